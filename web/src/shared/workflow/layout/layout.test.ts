import { describe, expect, it } from "vitest";
import { type Graph, graph } from "../model/graph";
import { Random, randomSteps } from "../model/random.test-data";
import { type Doc, emptyDoc, type Step } from "../model/types";
import { type Laid, type LaidNode, layOut, layoutKey } from "./layout";
import { overlaps, startNode } from "./size";

const step = (id: string, more: Partial<Step> = {}): Step => ({ id, uses: "log.write", ...more });
const doc = (steps: Step[], more: Partial<Doc> = {}): Doc => ({ ...emptyDoc, steps, ...more });
const at = (laid: Laid, id: string): LaidNode => laid.nodes.find((n) => n.id === id) as LaidNode;

describe("layOut", () => {
	it("puts the first step of a plain list at the origin and the others below it", () => {
		const laid = layOut(doc([step("a"), step("b"), step("c")]));
		expect(["a", "b", "c"].map((id) => [at(laid, id).x, at(laid, id).y])).toEqual([
			[0, 0],
			[0, 128],
			[0, 256],
		]);
		expect(at(laid, startNode)).toMatchObject({ x: 0, y: -96, width: 240, height: 32 });
	});

	it("keeps parallel steps in list order", () => {
		const fan = ["b", "c", "d", "e"].map((id) => step(id, { needs: ["a"] }));
		const laid = layOut(doc([step("a"), ...fan, step("j", { needs: ["d", "b", "e", "c"] })]));
		const xs = fan.map((s) => at(laid, s.id).x);
		expect(xs).toEqual([...xs].sort((a, b) => a - b));
		expect(new Set(fan.map((s) => at(laid, s.id).y)).size).toBe(1);
	});

	it("starts branches side by side, whatever their length", () => {
		const steps = [
			step("a"),
			step("b"),
			step("b2"),
			step("b3"),
			step("c", { needs: ["a"] }),
			step("d", { needs: ["a"] }),
			step("d2"),
		];
		const laid = layOut(doc([...steps, step("j", { needs: ["b3", "c", "d2"] }), step("x", { needs: ["a", "j"] })]));
		expect(new Set(["b", "c", "d"].map((id) => at(laid, id).y)).size).toBe(1);
		const xs = ["b", "c", "d"].map((id) => at(laid, id).x);
		expect(xs).toEqual([...xs].sort((a, b) => a - b));
		expect(at(laid, "j").y).toBe(at(laid, "b3").y + 128);
	});

	it("routes long edges around other nodes", () => {
		const body = [step("x"), step("y"), step("z", { needs: ["x", "y"] })];
		const laid = layOut(
			doc([step("a"), step("b"), step("c", { needs: ["a", "b"] }), { id: "each", foreach: "[1]", steps: body }]),
		);
		for (const [from, past, to] of [
			["a", "b", "c"],
			["x", "y", "z"],
		] as const) {
			const bends = laid.edges.find((edge) => edge.id === `${from}->${to}`)?.bends ?? [];
			const node = at(laid, past);
			expect(bends.length).toBeGreaterThan(0);
			for (const { x } of bends) expect(x < node.absolute.x || x > node.absolute.x + node.width).toBe(true);
			expect(Math.min(...bends.map(({ y }) => y))).toBeGreaterThan(at(laid, from).absolute.y);
			expect(Math.max(...bends.map(({ y }) => y))).toBeLessThan(at(laid, to).absolute.y);
		}
		expect(laid.edges.find((edge) => edge.id === "a->b")?.bends).toBeUndefined();
		const each = at(laid, "each");
		for (const { x } of laid.edges.find((edge) => edge.id === "x->z")?.bends ?? []) {
			expect(x).toBeGreaterThan(each.x);
			expect(x).toBeLessThan(each.x + each.width);
		}
	});

	it("puts triggers in one row above the bar, and only the bar leads to first steps", () => {
		const triggers = [
			{ id: "hook", type: "webhook" as const },
			{ id: "nightly", type: "schedule" as const },
		];
		const laid = layOut(doc([step("a"), step("b", { needs: [] }), step("c")], { triggers }));
		expect(at(laid, "@hook").y).toBe(at(laid, "@nightly").y);
		expect(at(laid, "@hook").x).toBeLessThan(at(laid, "@nightly").x);
		expect(at(laid, "@hook").y + 64).toBeLessThan(at(laid, startNode).y);
		expect(laid.edges.filter((e) => e.source === startNode).map((e) => e.target)).toEqual(["a", "b"]);
		expect(laid.edges.filter((e) => e.source.startsWith("@")).map((e) => e.target)).toEqual([startNode, startNode]);
	});

	it("draws a block around its steps, and an empty one at its minimum size", () => {
		const body = [step("x"), step("y"), step("z", { needs: ["x"] })];
		const laid = layOut(
			doc([step("a"), { id: "each", foreach: "[1]", steps: body }, { id: "none", foreach: "[1]", steps: [] }]),
		);
		const each = at(laid, "each");
		expect(each.kind).toBe("block");
		expect([each.width, each.height]).toEqual([240 + 32 + 240 + 48, 40 + 24 + 64 * 3 + 56]);
		expect([at(laid, "none").width, at(laid, "none").height]).toEqual([288, 136]);
		for (const id of ["x", "y", "z"]) {
			expect(at(laid, id).parent).toBe("each");
			expect(at(laid, id).absolute).toEqual({ x: each.x + at(laid, id).x, y: each.y + at(laid, id).y });
		}
		expect(at(laid, "x").y).toBe(64);
	});

	it("keeps stored positions and moves followers along", () => {
		const laid = layOut(
			doc([step("a"), step("b"), step("c")], {
				layout: { b: [400, 240], "@hook": [800, -300] },
				triggers: [{ id: "hook", type: "webhook" }],
			}),
		);
		expect(at(laid, "a")).toMatchObject({ x: 0, y: 0 });
		expect(at(laid, "b")).toMatchObject({ x: 400, y: 240 });
		expect(at(laid, "c")).toMatchObject({ x: 400, y: 368 });
		expect(at(laid, "@hook")).toMatchObject({ x: 800, y: -300 });
	});

	it("does not depend on what steps do", () => {
		const before = doc([step("a"), { id: "x", foreach: "[1]", steps: [step("b")] }]);
		const named = doc([step("a", { name: "A", if: "true" }), { id: "x", foreach: "[2]", steps: [step("b")] }]);
		expect(layoutKey(named)).toBe(layoutKey(before));
		expect(layoutKey({ ...before, layout: { a: [8, 8] } })).not.toBe(layoutKey(before));
		expect(layoutKey(doc([step("a"), step("x"), step("b")]))).not.toBe(layoutKey(before));
	});

	it("handles cycles", () => {
		const laid = layOut(doc([step("a", { needs: ["b"] }), step("b", { needs: ["a"] })]));
		expect(laid.nodes).toHaveLength(3);
	});

	it("avoids overlaps, lists parents before children, and is deterministic", { timeout: 60_000 }, () => {
		for (let seed = 1; seed <= 60; seed++) {
			const random = new Random(seed);
			const steps = randomSteps(random, 2 + random.below(24));
			const layout: Record<string, [number, number]> = {};
			if (seed % 2)
				for (const [i, s] of steps.entries()) if (random.chance(0.2)) layout[s.id] = [i * 600, random.below(200) * 8];
			const triggers = Array.from({ length: random.below(4) }, (_, i) => ({ id: `t${i}`, type: "manual" as const }));
			const laid = layOut(doc(steps, { layout, triggers }));
			expect(layOut(doc(structuredClone(steps), { layout, triggers }))).toEqual(laid);
			if (Object.keys(layout).length === 0) siblings(laid, graph(doc(steps)), `seed ${seed}`);
			const seen = new Set<string | null>([null]);
			for (const n of laid.nodes) {
				expect(seen.has(n.parent)).toBe(true);
				seen.add(n.id);
				const parent = laid.nodes.find((other) => other.id === n.parent);
				if (parent) {
					expect(n.x).toBeGreaterThanOrEqual(24);
					expect(n.y).toBeGreaterThanOrEqual(64);
					expect(n.x + n.width).toBeLessThanOrEqual(parent.width - 24);
					expect(n.y + n.height).toBeLessThanOrEqual(parent.height - 24);
				}
				for (const other of laid.nodes) {
					if (other === n || other.parent !== n.parent || (layout[n.id] && layout[other.id])) continue;
					expect(overlaps(n, other), `${n.id} on ${other.id} with seed ${seed}`).toBe(false);
				}
			}
		}
	});

	/** Steps with the same single predecessor are side by side, in list order. */
	function siblings(laid: Laid, g: Graph, label: string): void {
		const rows = new Map<string, string[]>();
		for (const n of g.nodes.values()) {
			const key = n.needs.length === 1 ? `${n.needs[0]}` : "";
			if (key) rows.set(key, [...(rows.get(key) ?? []), n.id]);
		}
		for (const ids of rows.values()) {
			const xs = ids.map((id) => at(laid, id).x);
			expect(xs, `${ids} ${label}`).toEqual([...xs].sort((a, b) => a - b));
			expect(new Set(ids.map((id) => at(laid, id).y)).size, `${ids} ${label}`).toBe(1);
		}
	}

	// Far slower than it is, this would exceed even this limit.
	it("lays out 200 steps", { timeout: 180_000 }, () => {
		const laid = layOut(doc(randomSteps(new Random(7), 200)));
		expect(laid.nodes.length).toBeGreaterThanOrEqual(200);
	});
});
