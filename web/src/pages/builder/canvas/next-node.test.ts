import { describe, expect, it } from "vitest";
import { layOut } from "@/shared/workflow/layout/layout";
import { type Doc, emptyDoc, graph } from "@/shared/workflow/model";
import { placeholders } from "./build";
import { edgeUnder, endsOf } from "./drop";
import { type Direction, nextNode } from "./next-node";

const doc: Doc = {
	...emptyDoc,
	triggers: [
		{ id: "hook", type: "webhook" },
		{ id: "nightly", type: "schedule" },
	],
	steps: [
		{ id: "a", uses: "log.write" },
		{ id: "b", uses: "log.write", needs: ["a"] },
		{ id: "c", uses: "log.write", needs: ["a"] },
		{ id: "loop", needs: ["b", "c"], foreach: "x", steps: [{ id: "in" }, { id: "out" }] },
		{ id: "end", uses: "log.write" },
	],
};

const go = (from: string, way: Direction, within = doc) => nextNode(within, graph(within), layOut(within), from, way);

describe("arrow keys", () => {
	it.each<[string, Direction, string | undefined]>([
		["@hook", "right", "@nightly"],
		["@nightly", "down", "a"],
		["a", "up", "@hook"],
		["a", "down", "b"],
		["b", "right", "c"],
		["c", "left", "b"],
		["c", "right", undefined],
		["c", "down", "loop"],
		["loop", "down", "in"],
		["in", "up", "loop"],
		["in", "down", "out"],
		["out", "down", "end"],
		["end", "up", "loop"],
		["end", "down", undefined],
	])("from %s %s is %s", (from, way, to) => {
		expect(go(from, way)).toBe(to);
	});

	it("lead to the placeholders in an empty document", () => {
		expect(go(placeholders.trigger, "down", emptyDoc)).toBe(placeholders.step);
		expect(go(placeholders.step, "up", emptyDoc)).toBe(placeholders.trigger);
	});
});

describe("a dragged step", () => {
	const laid = layOut(doc);
	const middleOf = (from: string, to: string) => {
		const [a, b] = [from, to].map((id) => laid.nodes.find((one) => one.id === id));
		if (!a || !b) throw new Error("no such node");
		return {
			x: (a.absolute.x + a.width / 2 + b.absolute.x + b.width / 2) / 2,
			y: (a.absolute.y + a.height + b.absolute.y) / 2,
		};
	};

	it("is over the edge whose middle it covers", () => {
		expect(edgeUnder(laid, new Set(["end"]), null, middleOf("a", "b"))).toBe("a->b");
	});

	it("ignores its own edges and those of other lists", () => {
		expect(edgeUnder(laid, new Set(["b"]), null, middleOf("a", "b"))).not.toBe("a->b");
		expect(edgeUnder(laid, new Set(["end"]), null, middleOf("in", "out"))).toBeNull();
	});

	it("represents the start as null", () => {
		expect(endsOf("#start->a")).toEqual({ from: null, to: "a" });
	});
});
