import { describe, expect, it } from "vitest";
import { againOf } from "./again";

const manual = { type: "manual", id: null, payload: { order: 42 }, headers: null, query: null, test: false } as const;

describe("running again", () => {
	it("starts by hand what was started by hand, with the payload", () => {
		expect(againOf({ ...manual, payload_files: [] })).toEqual({ trigger: null, body: { payload: { order: 42 } } });
		expect(againOf({ ...manual, payload_files: [], type: "schedule", id: "daily" }).trigger).toBeNull();
	});

	it("fires a webhook again with the headers and the query of its call", () => {
		const called = { ...manual, payload_files: [], type: "webhook", id: "hook" };
		expect(againOf({ ...called, headers: { "x-event": "created" }, query: { dry: "1" } })).toEqual({
			trigger: "hook",
			body: { payload: { order: 42 }, headers: { "x-event": "created" }, query: { dry: "1" } },
		});
		expect(againOf({ ...called, headers: {} }).body.query).toEqual({});
	});

	it("sends files apart from the payload, and leaves what only looks like one", () => {
		const payload = { "a/b": { $file: "file_1", name: "x" }, data: { $file: "file_2" }, list: [{ $file: "file_3" }] };
		expect(againOf({ ...manual, payload, payload_files: ["/a~1b", "/list/0"] }).body).toEqual({
			payload: { data: { $file: "file_2" }, list: [{ $file: "file_3" }] },
			files: { "a/b": "file_1" },
		});
	});
});
