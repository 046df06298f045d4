import type { Layout } from "../model/types";
import type { Item } from "./rank";
import { around, type Box, gap, node, overlaps, snap, start, startNode } from "./size";

/**
 * Merges automatic and stored positions: stored ones are kept, followers move along with a
 * moved step, and no automatic position overlaps another node.
 */
export function mergePositions(
	auto: ReadonlyMap<string, Box>,
	items: readonly Item[],
	triggers: readonly string[],
	chosen: Layout,
): Map<string, Box> {
	const out = new Map<string, Box>();
	for (const item of items) {
		const at = chosen[item.id];
		if (at) out.set(item.id, { x: at[0], y: at[1], width: item.width, height: item.height });
	}
	const moved = out.size > 0;
	const shifts = new Shifts(auto, items, out);
	for (const item of items) {
		if (out.has(item.id)) continue;
		const box = auto.get(item.id) as Box;
		const { dx, dy } = shifts.of(item.id);
		const wish = { ...box, x: box.x + dx, y: box.y + dy };
		out.set(item.id, moved ? avoidOverlap(wish, out.values(), "x", 1) : wish);
	}
	const bar = barBox(auto.get(startNode) as Box, items, out, moved);
	out.set(startNode, bar);
	for (const [id, box] of row(bar, triggers, chosen, out)) out.set(id, box);
	return out;
}

/** How far a step moves along with its predecessors. */
class Shifts {
	private readonly known = new Map<string, { dx: number; dy: number }>();
	private readonly needs: ReadonlyMap<string, readonly string[]>;

	constructor(
		private readonly auto: ReadonlyMap<string, Box>,
		items: readonly Item[],
		private readonly chosen: ReadonlyMap<string, Box>,
	) {
		this.needs = new Map(items.map((item) => [item.id, item.needs]));
		for (const [id, box] of [...this.chosen]) {
			const from = this.auto.get(id);
			if (from) this.known.set(id, { dx: snap(box.x - from.x), dy: snap(box.y - from.y) });
		}
	}

	of(id: string): { dx: number; dy: number } {
		const known = this.known.get(id);
		if (known) return known;
		this.known.set(id, { dx: 0, dy: 0 }); // breaks a cycle
		const first = this.needs.get(id)?.[0];
		const shift = first === undefined ? { dx: 0, dy: 0 } : this.of(first);
		this.known.set(id, shift);
		return shift;
	}
}

/** Moves a box along an axis until it overlaps no other. */
function avoidOverlap(box: Box, others: Iterable<Box>, axis: "x" | "y", way: 1 | -1): Box {
	const rest = [...others];
	let here = box;
	for (let hit = rest.find((other) => overlaps(here, other)); hit; hit = rest.find((other) => overlaps(here, other))) {
		if (axis === "x") here = { ...here, x: snap(hit.x + hit.width + gap.node) };
		else here = { ...here, y: snap(way > 0 ? hit.y + hit.height + gap.node : hit.y - here.height - gap.node) };
	}
	return here;
}

/** The bar is centered above the first steps. */
function barBox(auto: Box, items: readonly Item[], steps: ReadonlyMap<string, Box>, moved: boolean): Box {
	if (!moved) return auto;
	const first = items.filter((item) => item.needs.includes(startNode)).map((item) => steps.get(item.id) as Box);
	if (first.length === 0) return avoidOverlap(auto, steps.values(), "y", -1);
	const over = around(first);
	const x = snap(over.x + over.width / 2 - auto.width / 2);
	return avoidOverlap({ ...auto, x, y: snap(over.y - gap.rank - auto.height) }, steps.values(), "y", -1);
}

/** Triggers without a stored position form a row above the bar. */
function row(
	bar: Box,
	triggers: readonly string[],
	chosen: Layout,
	others: ReadonlyMap<string, Box>,
): Map<string, Box> {
	const out = new Map<string, Box>();
	const free: string[] = [];
	for (const id of triggers) {
		const at = chosen[id];
		if (at) out.set(id, { x: at[0], y: at[1], ...node });
		else free.push(id);
	}
	const width = free.length * (node.width + gap.node) - gap.node;
	let x = snap(bar.x + (bar.width - width) / 2);
	for (const id of free) {
		const wish = { x, y: bar.y - start.gap - node.height, ...node };
		const box = avoidOverlap(wish, [...others.values(), ...out.values()], "x", 1);
		out.set(id, box);
		x = box.x + node.width + gap.node;
	}
	return out;
}
