import { describe, expect, it } from "vitest";
import { negatedBy, otherwiseOf } from "../otherwise";
import { type Doc, emptyDoc, type Step } from "../types";
import { change, changeAt } from "./change";
import { rename } from "./rename";
import { split } from "./split";

const doc = (...steps: Step[]): Doc => ({ ...emptyDoc, steps });
const ifs = ({ steps }: Pick<Doc, "steps">) => Object.fromEntries(steps.map((step) => [step.id, step.if]));
const order = { payload: "trigger.payload.total > 100" };

/** a, then big and small, where small is the "otherwise". */
function splitDoc(conditions = [order.payload], otherwise = "small"): Doc {
	const paths = conditions.map((condition, i) => ({
		condition,
		step: { id: i === 0 ? "big" : `path${i}`, uses: "x.y" },
	}));
	return split(doc({ id: "a", uses: "x.y" }), paths, { id: otherwise, uses: "x.y" }, { at: "after", step: "a" }).doc;
}

describe("an otherwise", () => {
	it("follows the negated condition while it is typed", () => {
		let now = splitDoc();
		for (const text of ["x", "x ", "x > 1", "${{ x > 2 }}", "x // why"]) now = changeAt(now, "/steps/1/if", text).doc;
		expect(ifs(now)).toEqual({ a: undefined, big: "x // why", small: "!(x // why\n)" });
	});

	it("follows each of several conditions", () => {
		const now = splitDoc(["x > 1", "y"]);
		expect(negatedBy(now, "small").map(({ owner }) => owner)).toEqual(["big", "path1"]);
		expect(ifs(change(now, "path1", "/if", "z").doc).small).toBe("!(x > 1) && !(z)");
		expect(ifs(change(now, "big", "/if", "z").doc).small).toBe("!(z) && !(y)");
	});

	it("distinguishes paths whose conditions are temporarily equal", () => {
		let now = splitDoc(["x", "y"]);
		for (const text of ["x", "x ", "x > 5"]) now = change(now, "path1", "/if", text).doc;
		expect(ifs(now).small).toBe("!(x) && !(x > 5)");
		for (const id of ["big", "path1"]) now = change(now, id, "/if", undefined).doc;
		expect(ifs(now).small).toBe("!(true) && !(true)");
		now = change(now, "big", "/if", "a").doc;
		expect(ifs(change(now, "path1", "/if", "b").doc).small).toBe("!(a) && !(b)");
	});

	it("never runs while the other step has no condition, and follows a new one", () => {
		const cleared = change(splitDoc(), "big", "/if", undefined).doc;
		expect(ifs(cleared)).toEqual({ a: undefined, big: undefined, small: "!(true)" });
		expect(ifs(change(cleared, "big", "/if", "y").doc)).toEqual({ a: undefined, big: "y", small: "!(y)" });
	});

	it("is detached when it is edited itself", () => {
		const own = change(splitDoc(), "small", "/if", "!(x) || late").doc;
		expect(negatedBy(own, "small")).toEqual([]);
		expect(ifs(change(own, "big", "/if", "y").doc).small).toBe("!(x) || late");
	});

	it("is recognised only in the form that the builder writes, within one list", () => {
		const others = doc(
			{ id: "a", if: "x" },
			{ id: "b", if: "!x" },
			{ id: "c", if: "! (x)" },
			{ id: "d", foreach: "[1]", steps: [{ id: "e", if: "!(x)" }] },
			{ id: "f", if: "${{ !(x) }}" },
		);
		expect(otherwiseOf(others, "a")).toEqual([]);
		expect(change(others, "a", "/if", "y").doc.steps.slice(1)).toEqual(others.steps.slice(1));
	});

	it("belongs to the nearest matching step with the same predecessors", () => {
		const twice = doc(
			{ id: "a" },
			{ id: "early", if: "x" },
			{ id: "big", needs: ["a"], if: "x" },
			{ id: "small", needs: ["a"], if: "!(x)" },
		);
		expect(otherwiseOf(twice, "early")).toEqual([]);
		expect(otherwiseOf(twice, "big")).toEqual(["small"]);
		expect(ifs(change(twice, "early", "/if", "y").doc).small).toBe("!(x)");
	});

	it("works for nested otherwises and across renames", () => {
		const chain = doc({ id: "a", if: "x" }, { id: "b", needs: [], if: "!(x)" }, { id: "c", needs: [], if: "!(!(x))" });
		expect(ifs(change(chain, "a", "/if", "y").doc)).toEqual({ a: "y", b: "!(y)", c: "!(!(y))" });
		const named = splitDoc(["steps.a.output.ok"]);
		expect(otherwiseOf(rename(named, "a", "first").doc, "big")).toEqual(["small"]);
	});
});
