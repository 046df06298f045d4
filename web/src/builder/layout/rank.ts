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
 * Every item stands right below the last of what it needs: that is when it runs,
 * and branches begin side by side however long they are. There are no cycles
 * left when this is asked for.
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
	/** Where an edge that passes other items bends, by its id. */
	readonly bends: ReadonlyMap<string, readonly Spot[]>;
}

export interface Spot {
	readonly x: number;
	readonly y: number;
}

/**
 * Places items in ranks from top to bottom. They are given in the order of the
 * list and the order heuristic is off, so that siblings stay in that order.
 */
export function arrange(items: readonly Item[]): Arranged {
	const g: Ranked = new Graph();
	const options = { rankdir: "TB", nodesep: gap.node, ranksep: gap.rank, rankalign: "top" } as const;
	// The type of a graph does not know that a ranker can be a function.
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
		// An edge to the next rank has its ends and its middle.
		if (points.length > 3) bends.set(edgeId(v, w), straight(points.slice(1, -1)));
	}
	return { boxes, bends };
}

/** The ends of each stretch that goes straight down. */
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

/** The room that items and the edges among them take, in steps of the grid. */
export function extent({ boxes, bends }: Arranged): Box {
	const spots = [...bends.values()].flat().map((spot) => ({ ...spot, width: 0, height: 0 }));
	const { x, y, width, height } = around([...boxes.values(), ...spots]);
	const left = Math.floor(x / grid) * grid;
	return { x: left, y, width: Math.ceil((x + width - left) / grid) * grid, height };
}
