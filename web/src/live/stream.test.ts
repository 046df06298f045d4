import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LiveEvent } from "./parse";
import { Stream } from "./stream";

class Tab extends EventTarget {
	visibilityState = "visible";
	turn(state: "visible" | "hidden") {
		this.visibilityState = state;
		this.dispatchEvent(new Event("visibilitychange"));
	}
}

interface Connection {
	headers: Record<string, string>;
	signal: AbortSignal;
	send: (text: string) => void;
	end: () => void;
}

let connections: Connection[];
let status: number;
let tab: Tab;
let stream: Stream;
let events: LiveEvent[];

beforeEach(() => {
	vi.useFakeTimers();
	connections = [];
	status = 200;
	tab = new Tab();
	events = [];
	vi.stubGlobal("fetch", async (_: string, init: { headers: Record<string, string>; signal: AbortSignal }) => {
		let pipe: ReadableStreamDefaultController<Uint8Array> | undefined;
		const body = new ReadableStream<Uint8Array>({
			start(controller) {
				pipe = controller;
				init.signal.addEventListener("abort", () => controller.error(new Error("aborted")));
			},
		});
		connections.push({
			headers: init.headers,
			signal: init.signal,
			send: (text) => pipe?.enqueue(new TextEncoder().encode(text)),
			end: () => pipe?.close(),
		});
		return new Response(status === 204 ? null : body, { status });
	});
	stream = new Stream("/ui/v1/events/stream", tab as unknown as Document);
	stream.on(
		() => true,
		(event) => events.push(event),
	);
});

afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

const settle = () => vi.advanceTimersByTimeAsync(0);

test("resumes after the last event when the stream breaks", async () => {
	stream.start();
	await settle();
	connections[0]?.send("id: 7\nevent: run.started\ndata: {}\n\n");
	await settle();
	expect(events.map((event) => event.type)).toEqual(["gap", "run.started"]);
	expect(stream.status.state).toBe("live");
	connections[0]?.end();
	await settle();
	expect(stream.status.state).toBe("lost");
	await vi.advanceTimersByTimeAsync(2_000);
	expect(connections).toHaveLength(2);
	expect(connections[1]?.headers["Last-Event-ID"]).toBe("7");
	expect(stream.status.state).toBe("live");
	expect(events.map((event) => event.type)).toEqual(["gap", "run.started"]);
});

test("reports a gap when it first connects, because the page may have loaded its data before", async () => {
	stream.start();
	await settle();
	expect(events.map((event) => event.type)).toEqual(["gap"]);
});

test("reports a gap when a stream without a position breaks", async () => {
	stream.start();
	await settle();
	events.length = 0;
	connections[0]?.end();
	await vi.advanceTimersByTimeAsync(2_000);
	expect(events.map((event) => event.type)).toEqual(["gap"]);
});

test("backs off between attempts", async () => {
	status = 503;
	stream.start();
	await vi.advanceTimersByTimeAsync(60_000);
	expect(connections.length).toBeGreaterThan(4);
	expect(connections.length).toBeLessThan(10);
});

test("disconnects in a hidden tab, and resumes when it becomes visible", async () => {
	stream.start();
	await settle();
	connections[0]?.send("id: 3\n\n");
	await settle();
	tab.turn("hidden");
	expect(connections[0]?.signal.aborted).toBe(true);
	await vi.advanceTimersByTimeAsync(120_000);
	expect(connections).toHaveLength(1);
	tab.turn("visible");
	await settle();
	expect(connections[1]?.headers["Last-Event-ID"]).toBe("3");
});

test("reconnects after a long silence", async () => {
	stream.start();
	await settle();
	await vi.advanceTimersByTimeAsync(44_000);
	expect(connections).toHaveLength(1);
	await vi.advanceTimersByTimeAsync(5_000);
	expect(connections).toHaveLength(2);
});

test.each([204, 404, 410])("status %i ends the stream", async (answer) => {
	status = answer;
	stream.start();
	await vi.advanceTimersByTimeAsync(120_000);
	expect(connections).toHaveLength(1);
	expect(stream.status.state).toBe("ended");
});

test("the event end ends the stream", async () => {
	stream.start();
	await settle();
	connections[0]?.send('event: end\nid: end\ndata: {"reason":"finished"}\n\n');
	connections[0]?.end();
	await vi.advanceTimersByTimeAsync(120_000);
	expect(connections).toHaveLength(1);
	expect(stream.status.state).toBe("ended");
});

test("a paused stream stays closed until every pause is released", async () => {
	stream.start();
	await settle();
	const first = stream.pause();
	const second = stream.pause();
	expect(connections[0]?.signal.aborted).toBe(true);
	first();
	await settle();
	expect(connections).toHaveLength(1);
	second();
	await settle();
	expect(connections).toHaveLength(2);
});

test("reset drops the position", async () => {
	stream.start();
	await settle();
	connections[0]?.send("id: 3\n\n");
	await settle();
	stream.reset();
	await settle();
	expect(connections[1]?.headers["Last-Event-ID"]).toBeUndefined();
});

test("a stream waiting for a slot is not lost", async () => {
	let free = true;
	vi.stubGlobal("navigator", {
		locks: { request: (_: string, __: object, work: () => Promise<void>) => (free ? work() : new Promise(() => {})) },
	});
	stream.start();
	await settle();
	expect(stream.status.state).toBe("live");
	events.length = 0;
	free = false;
	connections[0]?.end();
	await settle();
	expect(stream.status.state).toBe("lost");
	// Other tabs hold the slots, so the server is up; this tab refetches periodically instead.
	await vi.advanceTimersByTimeAsync(15_000);
	expect(stream.status.state).toBe("connecting");
	expect(events.map((event) => event.type)).toEqual(["gap"]);
});
