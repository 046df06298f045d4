import { type EdgeLabel, Graph, type GraphLabel, layout, type NodeLabel } from "@dagrejs/dagre";
import { edgeId } from "../model/graph";
import { around, type Box, gap, grid, snap } from "./size";

export interface Item {
	readonly id: string;
	readonly width: number;
	readonly height: number;
	readonly needs: readonly string[];
}

type Ranked = Graph<GraphLabel, NodeLabel, EdgeLabel>;

/**
 * Each item is right below the last of its predecessors, so that parallel branches start
 * side by side whatever their length. The graph has no cycles at this point.
 */
function rank(g: Ranked): void {
	const ranks = new Map<string, number>();
	const of = (id: string): number => {
		const known = ranks.get(id);
		if (known !== undefined) return known;
		const own = Math.max(0, ...(g.inEdges(id) ?? []).map((edge) => of(edge.v) + (g.edge(edge).minlen ?? 1)));
		ranks.set(id, own);
		return own;
	};
	for (const id of g.nodes()) g.node(id).rank = of(id);
}

export interface Arranged {
	readonly boxes: ReadonlyMap<string, Box>;
	/** The bends of edges that pass other items, by edge id. */
	readonly bends: ReadonlyMap<string, readonly Spot[]>;
}

export interface Spot {
	readonly x: number;
	readonly y: number;
}

/**
 * Arranges items in ranks from top to bottom. Items are given in list order and the order
 * heuristic is off, so that siblings keep that order.
 */
export function arrange(items: readonly Item[]): Arranged {
	const g: Ranked = new Graph();
	const options = { rankdir: "TB", nodesep: gap.node, ranksep: gap.rank, rankalign: "top" } as const;
	// The types do not know that a ranker can be a function.
	g.setGraph({ ...options, ranker: rank } as unknown as GraphLabel);
	for (const item of items) g.setNode(item.id, { width: item.width, height: item.height });
	for (const item of items) {
		for (const need of item.needs) g.setEdge(need, item.id, {});
	}
	if (items.length > 0) layout(g, { disableOptimalOrderHeuristic: true });
	const boxes = new Map<string, Box>();
	for (const { id, width, height } of items) {
		const at = g.node(id) as Spot;
		boxes.set(id, { x: snap(at.x - width / 2), y: snap(at.y - height / 2), width, height });
	}
	const bends = new Map<string, Spot[]>();
	for (const { v, w } of g.edges()) {
		const points = g.edge(v, w).points ?? [];
		// An edge to the next rank has only its ends and its middle.
		if (points.length > 3) bends.set(edgeId(v, w), straight(points.slice(1, -1)));
	}
	return { boxes, bends };
}

/** The ends of each vertical segment. */
function straight(points: readonly Spot[]): Spot[] {
	const round = points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
	return round.filter(({ x }, i) => round[i - 1]?.x !== x || round[i + 1]?.x !== x);
}

export function shift({ boxes, bends }: Arranged, dx: number, dy: number): Arranged {
	const move = <T extends Spot>(spot: T): T => ({ ...spot, x: spot.x + dx, y: spot.y + dy });
	return {
		boxes: new Map([...boxes].map(([id, box]) => [id, move(box)])),
		bends: new Map([...bends].map(([id, spots]) => [id, spots.map(move)])),
	};
}

/** The area that items and their edges occupy, aligned to the grid. */
export function extent({ boxes, bends }: Arranged): Box {
	const spots = [...bends.values()].flat().map((spot) => ({ ...spot, width: 0, height: 0 }));
	const { x, y, width, height } = around([...boxes.values(), ...spots]);
	const left = Math.floor(x / grid) * grid;
	return { x: left, y, width: Math.ceil((x + width - left) / grid) * grid, height };
}
