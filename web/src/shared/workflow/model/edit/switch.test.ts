import { describe, expect, it } from "vitest";
import { graph } from "../graph";
import { pathsOf } from "../need";
import { localProblems } from "../problems";
import { type Doc, type Edit, emptyDoc, type Step } from "../types";
import { addStep } from "./add";
import { connect } from "./connect";
import { choosePath, disconnect } from "./disconnect";
import { move } from "./move";
import { remove } from "./remove";
import { rename } from "./rename";
import { addPath, convertible, freeNeed, movePath, namePath, newSwitch, removePath, setElse, toSwitch } from "./switch";
import { wrap } from "./wrap";

const doc = (...steps: Step[]): Doc => ({ ...emptyDoc, steps });
const needs = ({ steps }: Pick<Doc, "steps">) => Object.fromEntries(steps.map((step) => [step.id, step.needs]));
const paths = ({ doc: { steps } }: Edit) =>
	pathsOf(steps.find(({ uses }) => uses === "flow.switch") as Step).map(({ id, name, when }) => [id, name, when]);

const size: Step = {
	id: "size",
	uses: "flow.switch",
	with: {
		paths: [
			{ id: "big", name: "Over 100", when: "steps.a.output.n > 100" },
			{ id: "medium", when: "true" },
		],
		else: "small",
	},
};
/** a, then a switch with one step on each path, and a join. */
const branched = doc(
	{ id: "a", uses: "x.y" },
	size,
	{ id: "b", needs: ["size.big"], uses: "x.y" },
	{ id: "c", needs: ["size.small"], uses: "x.y" },
	{ id: "d", needs: ["b", "c", "size.medium"], uses: "x.y" },
);

describe("a new switch", () => {
	it("takes what comes after it onto its first path", () => {
		const line = doc({ id: "a", uses: "x.y" }, { id: "b", uses: "x.y" });
		for (const place of [
			{ at: "after", step: "a" },
			{ at: "edge", from: "a", to: "b" },
			{ at: "before", step: "b" },
		] as const) {
			const edit = addStep(line, newSwitch, place);
			expect(needs(edit.doc)).toEqual({ a: undefined, branch: undefined, b: ["branch.path_1"] });
			expect(paths(edit)).toEqual([
				["path_1", "Path 1", ""],
				["otherwise", "Otherwise", undefined],
			]);
		}
	});

	it("has a problem until its condition is filled in", () => {
		const { doc: now } = addStep(doc(), newSwitch, { at: "end", block: null });
		expect(localProblems(now, () => undefined)).toEqual([
			{ pointer: "/steps/0/with/paths/0/when", message: "must not be empty", node: "branch" },
		]);
	});
});

describe("the paths of a switch", () => {
	it("are edges of the graph", () => {
		const ends = graph(branched).edges.map(({ id, from, path, to }) => [id, from, path, to]);
		expect(ends).toContainEqual(["size.big->b", "size", "big", "b"]);
		expect(graph(branched).nodes.get("size")?.followers).toEqual(["b", "c", "d"]);
	});

	it("are where steps are inserted", () => {
		const step = { uses: "x.y", id: "new" };
		expect(needs(addStep(branched, step, { at: "edge", from: "size.big", to: "b" }).doc)).toMatchObject({
			new: ["size.big"],
			b: undefined,
			c: ["size.small"],
		});
		expect(needs(addStep(branched, step, { at: "branch", step: "size.big" }).doc)).toMatchObject({
			new: ["size.big"],
			b: ["size.big"],
		});
		expect(needs(addStep(branched, step, { at: "after", step: "b.error" }).doc)).toMatchObject({ new: ["b.error"] });
	});

	it("are chosen in the needs of a step", () => {
		const moved = choosePath(branched, "size.big", "size.error", "b");
		expect(needs(moved.doc).b).toEqual(["size.error"]);
		expect(choosePath(branched, "size.medium", "b", "d").rejected).toContain("already");
		expect(needs(disconnect(branched, "size.medium", "d").doc).d).toEqual(["b", "c"]);
		expect(disconnect(branched, "size", "d").rejected).toContain("no longer exists");
		expect(connect(branched, "d.error", "b").rejected).toContain("wait for each other");
		expect(freeNeed(branched, "size")).toBe("size");
		expect(freeNeed(disconnect(branched, "size.medium", "d").doc, "size")).toBe("size.medium");
	});

	it("keep their steps from running unconditionally", () => {
		for (const edit of [
			remove(branched, ["size"]),
			move(branched, ["size"], { at: "after", step: "d" }),
			wrap(branched, ["size"], { foreach: "x" }),
		]) {
			expect(edit.rejected).toContain("“b” is on a path from here and would always run");
			expect(edit.doc).toBe(branched);
		}
		expect(needs(remove(branched, ["size", "b", "c", "d"]).doc)).toEqual({ a: undefined });
		const handled = doc({ id: "a", uses: "x.y" }, { id: "tell", name: "Tell me", needs: ["a.error"], uses: "x.y" });
		expect(remove(handled, ["a"]).rejected).toContain("“Tell me” is on a path");
	});

	it("follow a rename, with their conditions", () => {
		const renamed = rename(rename(branched, "size", "how_large").doc, "a", "order").doc;
		expect(needs(renamed)).toMatchObject({
			b: ["how_large.big"],
			c: ["how_large.small"],
			d: ["b", "c", "how_large.medium"],
		});
		expect(pathsOf(renamed.steps[1] as Step)[0]?.when).toBe("steps.order.output.n > 100");
	});

	it("are added, named, moved and removed", () => {
		const added = addPath(branched, "size");
		expect(paths(added)).toEqual([
			["big", "Over 100", "steps.a.output.n > 100"],
			["medium", "medium", "true"],
			["path_3", "Path 3", ""],
			["small", "Otherwise", undefined],
		]);
		const named = namePath(added.doc, "size", "path_3", "Very small");
		expect(paths(named)[2]).toEqual(["very_small", "Very small", ""]);
		// Somebody has chosen this id.
		expect(paths(namePath(branched, "size", "big", "Huge"))[0]?.slice(0, 2)).toEqual(["big", "Huge"]);
		expect(needs(namePath(branched, "size", "medium", "Middle").doc).d).toEqual(["b", "c", "size.middle"]);
		expect(paths(movePath(branched, "size", "medium", -1)).map(([id]) => id)).toEqual(["medium", "big", "small"]);
		expect(removePath(branched, "size", "big").rejected).toContain("“b” is on this path");
		expect(paths(removePath(named.doc, "size", "very_small")).map(([id]) => id)).toEqual(["big", "medium", "small"]);
		expect(setElse(branched, "size", false).rejected).toContain("“c” is on this path");
		const without = setElse(disconnect(branched, "size.small", "c").doc, "size", false);
		expect(paths(without).map(([id]) => id)).toEqual(["big", "medium"]);
		expect(paths(setElse(without.doc, "size", true)).at(-1)).toEqual(["otherwise", "Otherwise", undefined]);
	});

	it("named like the path for errors get another id", () => {
		const added = addPath(branched, "size");
		expect(paths(namePath(added.doc, "size", "path_3", "Error"))[2]?.[0]).toBe("error_2");
	});

	it("that do not exist are problems", () => {
		const wrong = doc(
			size,
			{ id: "b", needs: ["size.bog", "size.error"], uses: "x.y" },
			{ id: "c", needs: ["b.big"], uses: "x.y" },
		);
		const found = localProblems(wrong, () => undefined).filter(({ pointer }) => pointer.includes("needs"));
		expect(found.map(({ pointer, message }) => `${pointer}: ${message}`)).toEqual([
			'/steps/1/needs/0: step "size" has no path "bog"',
			'/steps/2/needs/0: step "b" has no paths: it is not a flow.switch',
		]);
	});
});

describe("conditions of which one negates the others", () => {
	const pair = doc(
		{ id: "a", uses: "x.y" },
		{ id: "big", name: "Call them", if: "${{ steps.a.output.n > 1 }}", uses: "x.y" },
		{ id: "odd", needs: ["a"], if: "x // why", uses: "x.y" },
		{ id: "small", needs: ["a"], if: "!(steps.a.output.n > 1) && !(x // why\n)", uses: "x.y" },
		{ id: "end", needs: ["big", "odd", "small"], uses: "x.y" },
	);

	it("become a switch", () => {
		expect(convertible(pair, "small")).toEqual(["big", "odd", "small"]);
		const edit = toSwitch(pair, "small");
		expect(paths(edit)).toEqual([
			["big", "Call them", "steps.a.output.n > 1"],
			["odd", "odd", "x // why"],
			["small", "Otherwise", undefined],
		]);
		expect(needs(edit.doc)).toEqual({
			a: undefined,
			branch: undefined,
			big: ["branch.big"],
			odd: ["branch.odd"],
			small: ["branch.small"],
			end: ["big", "odd", "small"],
		});
		expect(edit.doc.steps.map((step) => step.if)).toEqual(Array(6).fill(undefined));
	});

	it("do not if they are elsewhere in the graph, or only look alike", () => {
		const apart = doc({ id: "a", if: "x", uses: "x.y" }, { id: "b", if: "!(x)", uses: "x.y" });
		expect(convertible(apart, "b")).toEqual([]);
		expect(toSwitch(apart, "b").rejected).toContain("not the opposite");
		for (const other of ["!x", "! (x)", "!(y)"]) {
			expect(convertible(doc({ id: "a", needs: [], if: "x" }, { id: "b", needs: [], if: other }), "b")).toEqual([]);
		}
	});
});
