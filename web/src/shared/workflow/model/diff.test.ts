import { describe, expect, it } from "vitest";
import { diff, isSame } from "./diff";
import { randomOperation } from "./edit/operations.test-data";
import { rename } from "./edit/rename";
import { Random, randomSteps } from "./random.test-data";
import { type Doc, emptyDoc, type Step } from "./types";

const step = (id: string, more: Partial<Step> = {}): Step => ({ id, uses: "log.write", ...more });
const doc = (...steps: Step[]): Doc => ({ ...emptyDoc, steps });
const told = (from: Doc, to: Doc) =>
	diff(from, to).steps.map((s) => [s.change, s.step_id, ...s.fields.map((f) => f.field)].join(" "));

describe("diff", () => {
	const base = doc(step("a"), step("b", { with: { m: 1 } }), step("c"));

	it("reports added, removed and changed steps", () => {
		expect(told(base, doc(step("a"), step("b", { with: { m: 2, n: 1 } }), step("c"), step("d")))).toEqual([
			"changed b /with/m /with/n",
			"added d",
		]);
		expect(told(base, doc(step("a"), step("c")))).toEqual(["removed b", "changed c /needs"]);
		expect(diff(base, doc(step("a"), step("b"), step("c"))).steps[0]?.fields).toEqual([
			{ field: "/with", from: { m: 1 } },
		]);
	});

	it("reports moved and renamed steps, also across blocks", () => {
		expect(told(base, doc(step("c"), step("a"), step("b", { with: { m: 1 } })))).toEqual([
			"moved c /needs",
			"changed a /needs",
		]);
		const inside = doc(step("a"), { id: "x", foreach: "[1]", steps: [step("b", { with: { m: 1 } })] }, step("c"));
		expect(diff(base, inside).steps.find((s) => s.step_id === "b")).toMatchObject({
			change: "moved",
			from_block: null,
			to_block: "x",
		});
		expect(told(base, rename(base, "b", "q").doc)).toEqual(["renamed q /id", "changed c /needs"]);
	});

	it("treats explicit and implicit needs alike", () => {
		expect(
			isSame(diff(base, doc(step("a", { needs: [] }), step("b", { needs: ["a"], with: { m: 1 } }), step("c")))),
		).toBe(true);
	});

	it("reports triggers and settings", () => {
		const from: Doc = {
			...base,
			triggers: [
				{ id: "t", type: "schedule", every: "5m" },
				{ id: "gone", type: "manual" },
			],
		};
		const to: Doc = { ...base, triggers: [{ id: "t", type: "schedule", every: "9m" }], settings: { timeout: "1h" } };
		const d = diff(from, to);
		expect(d.triggers.map((t) => [t.change, t.trigger_id])).toEqual([
			["removed", "gone"],
			["changed", "t"],
		]);
		expect(d.settings).toEqual([{ field: "/timeout", to: "1h" }]);
	});

	it("is empty for equal documents, and symmetric", { timeout: 60_000 }, () => {
		for (let seed = 1; seed <= 80; seed++) {
			const random = new Random(seed);
			const from: Doc = { ...emptyDoc, steps: randomSteps(random, 3 + random.below(8)) };
			let to = from;
			for (let n = 0; n < 3; n++) to = randomOperation(random, to).edit.doc;
			expect(isSame(diff(to, structuredClone(to)))).toBe(true);
			const there = diff(from, to).steps;
			const back = diff(to, from).steps;
			const count = (list: typeof there, change: string) => list.filter((s) => s.change === change).length;
			expect(count(there, "added"), `seed ${seed}`).toBe(count(back, "removed"));
			expect(count(there, "moved"), `seed ${seed}`).toBe(count(back, "moved"));
		}
	});
});
