import { describe, expect, test } from "vitest";
import { complete } from "@/shared/workflow/expression/complete";
import { type Doc, emptyDoc, type JsonObject } from "@/shared/workflow/model";
import { gather, knownFor, pathFor, type RunData, scopeFor } from "./gather";

const doc: Doc = {
	...emptyDoc,
	steps: [
		{ id: "get", uses: "http.request" },
		{ id: "other", uses: "http.request" },
		{
			id: "lines",
			foreach: "${{ steps.get.output.body.lines }}",
			steps: [{ id: "reserve", uses: "http.request" }],
		},
		{ id: "last", uses: "data.set" },
	],
	pinned: { other: { status: 204 } },
};

const times = { attempt: 1, started_at: "", finished_at: "", duration_ms: 1, error: null, reason: null };
const run: RunData = {
	id: "run_1",
	trigger: { payload: { id: 42 }, headers: null, query: null },
	steps: [
		{
			step_id: "get",
			status: "succeeded",
			output: { body: { lines: [{ sku: "a" }, { sku: "b", left: 2 }] } },
			...times,
		},
		{ step_id: "other", status: "succeeded", output: { status: 200 }, ...times },
		{ step_id: "lines", status: "failed", output: {}, ...times },
		{ step_id: "lines[0].reserve", status: "succeeded", output: { status: 200 }, ...times },
		{ step_id: "lines[1].reserve", status: "failed", output: {}, ...times },
	],
};
const schema: JsonObject = { type: "object", properties: { status: { type: "integer" } } };
const outputOf = (uses: string) => (uses === "http.request" ? schema : undefined);

describe("gathered data", () => {
	test("names the origin of each value", () => {
		expect(gather({ doc, run: null, outputOf }).origins).toEqual({
			trigger: "none",
			"steps.get": "schema",
			"steps.other": "pinned",
			"steps.lines": "schema",
			"steps.reserve": "schema",
			"steps.last": "none",
		});
		expect(gather({ doc, run, outputOf }).origins).toMatchObject({
			trigger: "run",
			"steps.get": "run",
			"steps.other": "pinned",
		});
	});

	test("prefers a pin to a run", () => {
		expect(gather({ doc, run, outputOf }).data.outputs?.other).toEqual({ status: 204 });
	});

	test("uses the output schema for completion without a run", () => {
		const text = "${{ steps.get.output. }}";
		const labels = (at: RunData | null) =>
			complete(
				text,
				text.indexOf(". }") + 1,
				scopeFor(gather({ doc, run: at, outputOf }), doc, "/steps/3/with/values"),
				"template",
			).map((one) => one.label);
		expect(labels(null)).toEqual(["status"]);
		expect(labels(run)).toEqual(["body"]);
	});

	test("uses the item of the shown round", () => {
		const gathered = gather({ doc, run, outputOf });
		const item = scopeFor(gathered, doc, "/steps/2/steps/0/with/url").names.item;
		expect(item?.value).toEqual({ sku: "b", left: 2 });
		expect(pathFor(gathered, doc, "reserve")).toBe("lines[1].reserve");
		expect(pathFor(gather({ doc, run, outputOf, chosen: { lines: 0 } }), doc, "reserve")).toBe("lines[0].reserve");
	});

	test("tells which steps are known", () => {
		const before = knownFor(gather({ doc, run: null, outputOf }), doc, "reserve");
		expect([before.trigger, before.item, [...before.steps]]).toEqual([false, false, ["other"]]);
		const after = knownFor(gather({ doc, run, outputOf }), doc, "reserve");
		expect([after.trigger, after.item, after.steps.has("get")]).toEqual([true, true, true]);
		expect([...after.failed].sort()).toEqual(["lines", "reserve"]);
	});
});
