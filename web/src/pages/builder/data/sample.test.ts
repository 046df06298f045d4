import { describe, expect, test } from "vitest";
import { type Doc, emptyDoc, type Trigger } from "@/shared/workflow/model";
import { curlLine, needsSample, pinnedSample, pinOf, sampleInUse, sampleOfCall } from "./sample";

const doc = (triggers: Trigger[], steps: Doc["steps"] = [], pinned: Doc["pinned"] = {}): Doc => ({
	...emptyDoc,
	triggers,
	steps,
	pinned,
});
const hook: Trigger = { id: "hook", type: "webhook" };
const run = (id: string | null) => ({
	trigger: { id, type: "webhook", payload: { n: 1 }, headers: { a: "b" }, query: null },
});

describe("the sample in use", () => {
	const call = sampleOfCall("hook", { payload: { n: 2 }, headers: { x: "y" }, query: { q: "1" } });
	const pinned = doc([hook], [], { "@hook": pinOf(call) });

	test("is the chosen one, or a pinned one, or that of the run", () => {
		expect(sampleInUse({ payload: {} }, pinned, run("hook"))?.origin).toBe("sample");
		expect(sampleInUse(undefined, pinned, run("hook"))).toEqual({ sample: call, origin: "pinned" });
		expect(sampleInUse(undefined, doc([hook]), run("hook"))).toEqual({
			sample: { payload: { n: 1 }, headers: { a: "b" }, trigger: "hook" },
			origin: "run",
		});
		expect(sampleInUse(undefined, doc([hook]), null)).toBeUndefined();
	});

	test("is for no trigger that the document does not have", () => {
		expect(sampleInUse(undefined, doc([hook]), run("gone"))?.sample.trigger).toBeUndefined();
		expect(sampleInUse(undefined, doc([hook]), run(null))?.sample.trigger).toBeUndefined();
	});

	test("of a pin that is no sample is empty", () => {
		expect(pinnedSample(doc([hook], [], { "@hook": { total: 1 } }), "hook")).toEqual({ payload: {}, trigger: "hook" });
	});
});

test("a run needs a sample if a trigger brings data or a step reads it", () => {
	const set = (value: string) => [{ id: "set", uses: "data.set", with: { values: { a: value } } }];
	expect(needsSample(doc([], set("plain")))).toBe(false);
	expect(needsSample(doc([{ id: "nightly", type: "schedule" }], set("${{ steps.x.output }}")))).toBe(false);
	expect(needsSample(doc([{ id: "by_hand", type: "manual" }], set("${{ trigger.payload.id }}")))).toBe(true);
	expect(needsSample(doc([], [{ id: "each", foreach: "trigger.payload.lines", steps: set("x") }]))).toBe(true);
	expect(needsSample(doc([hook], set("plain")))).toBe(true);
});

describe("the curl line", () => {
	test("sends JSON to a URL, quoted for a shell", () => {
		expect(curlLine("https://a.example/hooks/x", "POST", { payload: { name: "O'Neil" } })).toBe(
			`curl -X POST 'https://a.example/hooks/x' -H 'Content-Type: application/json' -d '{"name":"O'\\''Neil"}'`,
		);
		expect(curlLine("https://a.example/hooks/x", "GET")).toBe("curl 'https://a.example/hooks/x'");
	});

	test("repeats the headers that a sender chose", () => {
		const headers = { "x-event": "order", host: "a.example", "content-type": "text/plain" };
		expect(curlLine("https://a.example", "PUT", { payload: {}, headers })).toBe(
			"curl -X PUT 'https://a.example' -H 'x-event: order' -H 'Content-Type: application/json' -d '{}'",
		);
	});
});
