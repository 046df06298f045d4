import { describe, expect, it } from "vitest";
import { layOut } from "@/builder/layout/layout";
import { type Doc, emptyDoc, graph } from "@/builder/model";
import { ghosts } from "./build";
import { edgeUnder, endsOf } from "./drop";
import { steer, type Way } from "./steer";

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

const go = (from: string, way: Way, within = doc) => steer(within, graph(within), layOut(within), from, way);

describe("arrow keys", () => {
	it.each<[string, Way, string | undefined]>([
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

	it("lead to what is missing in an empty document", () => {
		expect(go(ghosts.trigger, "down", emptyDoc)).toBe(ghosts.step);
		expect(go(ghosts.step, "up", emptyDoc)).toBe(ghosts.trigger);
	});
});

describe("a step that is dragged", () => {
	const laid = layOut(doc);
	const middleOf = (from: string, to: string) => {
		const [a, b] = [from, to].map((id) => laid.nodes.find((one) => one.id === id));
		if (!a || !b) throw new Error("no such node");
		return {
			x: (a.absolute.x + a.width / 2 + b.absolute.x + b.width / 2) / 2,
			y: (a.absolute.y + a.height + b.absolute.y) / 2,
		};
	};

	it("is over the edge whose middle it lies on", () => {
		expect(edgeUnder(laid, new Set(["end"]), null, middleOf("a", "b"))).toBe("a->b");
	});

	it("is over none of its own edges, and none of another list", () => {
		expect(edgeUnder(laid, new Set(["b"]), null, middleOf("a", "b"))).not.toBe("a->b");
		expect(edgeUnder(laid, new Set(["end"]), null, middleOf("in", "out"))).toBeNull();
	});

	it("names the start as null", () => {
		expect(endsOf("#start->a")).toEqual({ from: null, to: "a" });
	});
});
