import { Graph, layout } from "@dagrejs/dagre";
import { type Box, gap, snap } from "./size";

export interface Item {
	readonly id: string;
	readonly width: number;
	readonly height: number;
	readonly needs: readonly string[];
}

/**
 * Places items in ranks from top to bottom. They are given in the order of the
 * list and the order heuristic is off, so that siblings stay in that order.
 */
export function arrange(items: readonly Item[]): Map<string, Box> {
	const g = new Graph();
	g.setGraph({ rankdir: "TB", nodesep: gap.node, ranksep: gap.rank, rankalign: "top" });
	for (const item of items) g.setNode(item.id, { width: item.width, height: item.height });
	for (const item of items) {
		for (const need of item.needs) g.setEdge(need, item.id, {});
	}
	if (items.length > 0) layout(g, { disableOptimalOrderHeuristic: true });
	const out = new Map<string, Box>();
	for (const { id, width, height } of items) {
		const at = g.node(id) as { x: number; y: number };
		out.set(id, { x: snap(at.x - width / 2), y: snap(at.y - height / 2), width, height });
	}
	return out;
}
