import { describe, expect, it } from "vitest";
import { countProblems, mergeProblems } from "./merge-problems";
import { localProblems } from "./problems";
import { type Doc, emptyDoc, type JsonObject, type Step, type Trigger } from "./types";

const schema: JsonObject = {
	required: ["url"],
	properties: { url: { type: "string" }, auth: { type: "object", required: ["user"], properties: {} } },
};
const inputs = (action: string) => (action === "http.request" ? schema : action === "later" ? undefined : null);
const doc = (...steps: Step[]): Doc => ({ ...emptyDoc, steps });
const http = (id: string, more: Partial<Step> = {}): Step => ({
	id,
	uses: "http.request",
	with: { url: "x" },
	...more,
});
const told = (...steps: Step[]) => localProblems(doc(...steps), inputs).map((p) => `${p.pointer}: ${p.message}`);

describe("localProblems", () => {
	it("accepts a valid document", () => {
		const right = http("b", { if: "steps.a.output > 1", with: { url: "${{ steps.a.output['x'] }} $${{ x" } });
		expect(told(http("a"), right, { id: "x", uses: "later" })).toEqual([]);
	});

	it.each<[string, Step[], string[]]>([
		["a missing field", [http("a", { with: {} })], ["/steps/0/with/url: is required"]],
		["a missing field inside", [http("a", { with: { url: "x", auth: {} } })], ["/steps/0/with/auth/user: is required"]],
		["no action", [{ id: "a" }], ["/steps/0/uses: is required"]],
		["an unknown action", [{ id: "a", uses: "x.y" }], ['/steps/0/uses: unknown action "x.y"']],
		["an unknown need", [http("a", { needs: ["z"] })], ['/steps/0/needs/0: there is no step "z"']],
		["an id twice", [http("a"), http("a")], ['/steps/1/id: the id "a" is already used by another step']],
		[
			"an id that is none",
			[http("A")],
			["/steps/0/id: must start with a letter a-z and contain only a-z, 0-9 and _, at most 63 characters"],
		],
		["an empty block", [{ id: "x", foreach: "[1]", steps: [] }], ["/steps/0/steps: a loop needs at least one step"]],
		["a loop over nothing", [{ id: "x", foreach: "", steps: [http("y")] }], ["/steps/0/foreach: is required"]],
		["a bad expression", [http("a", { if: "1abc" })], ['/steps/0/if: "1abc" is not a number (column 1)']],
		[
			"an open expression",
			[http("a", { with: { url: "a ${{ x" } })],
			["/steps/0/with/url: this ${{ has no closing }}, or a quote inside it is not closed (column 3)"],
		],
		[
			"an empty expression",
			[http("a", { with: { url: "${{ }}" } })],
			["/steps/0/with/url: the expression is empty (column 4)"],
		],
		[
			"a step that comes later",
			[http("a", { if: "steps.b.output" }), http("b")],
			['/steps/0/if: step "b" does not come before this one'],
		],
		[
			"a step inside a block",
			[{ id: "x", foreach: "[1]", steps: [http("y")] }, http("b", { if: "steps.y.output" })],
			['/steps/1/if: step "y" is inside the block "x"'],
		],
		["a cycle", [http("a", { needs: ["b"] }), http("b")], ["/steps/0/needs: the steps wait for each other: a → b → a"]],
	])("reports %s", (_, steps, wanted) => expect(told(...steps)).toEqual(wanted));

	it("reports invalid expressions in triggers", () => {
		const triggers: Trigger[] = [{ id: "t", type: "poll", items: "response.'x", request: { url: "${{ cursor }}" } }];
		expect(localProblems({ ...doc(), triggers }, inputs)).toEqual([
			{ pointer: "/triggers/0/items", message: "the text is not closed: a quote is missing (column 10)", node: "@t" },
		]);
	});

	it("lets the condition of a repeat see the steps of the round", () => {
		expect(told({ id: "x", repeat: { until: "steps.y.output.ok" }, steps: [http("y")] })).toEqual([]);
	});
});

describe("mergeProblems", () => {
	const seen = doc(http("a"), http("b", { timeout: "9h" }), { id: "x", foreach: "[1]", steps: [http("y")] });
	const verdict = {
		doc: seen,
		problems: [
			{ pointer: "/steps/1/timeout", message: "must be at most 15m" },
			{ pointer: "/steps/2/steps/0/with/url", message: "must be a URL" },
		],
	};
	it("uses the server's verdict for an unchanged document", () => {
		const local = [{ pointer: "/steps/0", message: "local" }];
		expect(mergeProblems({ ...seen, layout: { a: [0, 0] } }, local, verdict).map((p) => p.node)).toEqual(["b", "y"]);
	});
	it("keeps the server's problems for unchanged steps, even if they moved", () => {
		const now = doc(http("n", { with: {} }), ...seen.steps.slice(0, 2), {
			id: "x",
			foreach: "[2]",
			steps: [http("y")],
		});
		const merged = mergeProblems(now, localProblems(now, inputs), verdict);
		expect(merged.map((p) => `${p.node} ${p.pointer}`)).toEqual([
			"n /steps/0/with/url",
			"b /steps/2/timeout",
			"y /steps/3/steps/0/with/url",
		]);
		const changed = doc(http("a"), http("b"), ...seen.steps.slice(2));
		expect(mergeProblems(changed, [], verdict).map((p) => p.node)).toEqual(["y"]);
	});
	it("counts the problems inside a block for the block", () => {
		const counts = countProblems(seen, mergeProblems(seen, [], verdict));
		expect([...counts]).toEqual([
			["b", 1],
			["y", 1],
			["x", 1],
		]);
	});
});
