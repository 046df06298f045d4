import { expect, test } from "vitest";
import { type LiveEvent, parser } from "./parse";

function read(pieces: string[]) {
	const events: LiveEvent[] = [];
	const positions: string[] = [];
	const parse = parser(
		(event) => events.push(event),
		(id) => positions.push(id),
	);
	for (const piece of pieces) parse(piece);
	return { events, positions };
}

const text =
	'retry: 2000\n\nevent: run.started\nid: 7\ndata: {"a":\ndata: 1}\n\n:\n\nid: 9\n\nevent: gap\ndata: {}\n\n';

test("parses events split at any position", () => {
	const whole = read([text]);
	expect(whole.events).toEqual([
		{ type: "run.started", id: "7", data: { a: 1 } },
		{ type: "gap", id: "", data: {} },
	]);
	expect(whole.positions).toEqual(["7", "9"]);
	for (let at = 1; at < text.length; at++) {
		expect(read([text.slice(0, at), text.slice(at)])).toEqual(whole);
	}
	expect(read([...text])).toEqual(whole);
});

test("ignores an incomplete event", () => {
	expect(read(["event: run.started\nid: 7\ndata: {}\n"])).toEqual({ events: [], positions: [] });
});

test("accepts CRLF line endings", () => {
	expect(read(["event: x\r\ndata: 1\r\n\r\n"]).events).toEqual([{ type: "x", id: "", data: 1 }]);
});
