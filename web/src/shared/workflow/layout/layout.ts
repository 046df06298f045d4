import { edgeId, type Graph, type GraphNode, graph } from "../model/graph";
import { type Doc, isBlock, type Step, triggerNode } from "../model/types";
import { mergePositions } from "./merge-positions";
import { type Arranged, arrange, extent, type Item, type Spot, shift } from "./rank";
import { around, type Box, frame, gap, node, start, startNode } from "./size";

export interface LaidNode extends Box {
	readonly id: string;
	readonly kind: "start" | "trigger" | "step" | "block";
	/** Its block, null at the top level. x and y are relative to that block. */
	readonly parent: string | null;
	/** From the origin of the canvas. */
	readonly absolute: { readonly x: number; readonly y: number };
	/** The number of enclosing blocks. */
	readonly depth: number;
}

export interface LaidEdge {
	readonly id: string;
	readonly source: string;
	readonly target: string;
	/** From a trigger to the bar, from the bar to a first step, or between steps. */
	readonly kind: "trigger" | "start" | "implicit" | "explicit";
	readonly block: string | null;
	/** The points where it bends around other nodes, from the origin of the canvas. */
	readonly bends?: readonly Spot[];
}

export interface Laid {
	/** Parents before children, otherwise in document order. */
	readonly nodes: readonly LaidNode[];
	readonly edges: readonly LaidEdge[];
	readonly bounds: Box;
}

/**
 * Computes the layout. The contents of blocks are laid out first; a block is then a node
 * like any other. The first step of a plain list is at the origin.
 */
export function layOut(doc: Pick<Doc, "triggers" | "steps" | "layout">): Laid {
	const g = graph(doc);
	const bodies = new Bodies(g);
	const top = [...g.nodes.values()].filter((n) => n.block === null);
	const items = top.map((n) => ({ id: n.id, needs: n.needs.length ? n.needs : [startNode], ...bodies.size(n) }));
	const bar = { id: startNode, needs: [], width: rowWidth(doc.triggers.length), height: start.height };
	const auto = originate(arrange([bar, ...items]));
	const boxes = mergePositions(auto.boxes, items, triggerKeys(doc), doc.layout);
	const nodes: LaidNode[] = [];
	for (const id of [startNode, ...triggerKeys(doc)]) {
		const box = boxes.get(id);
		if (box) nodes.push(laid(id, id === startNode ? "start" : "trigger", null, box, { x: 0, y: 0 }, 0));
	}
	for (const n of top) bodies.collect(n, boxes.get(n.id), null, { x: 0, y: 0 }, nodes);
	const bounds = around(nodes.filter((n) => n.parent === null));
	// Once a step has a stored position, edges are routed without bends.
	const bends = new Map(top.some((n) => doc.layout[n.id]) ? [] : auto.bends);
	bodies.bends(nodes, bends);
	return { nodes, edges: edgesOf(doc, g, bends), bounds };
}

/** Documents with the same key have the same layout. */
export function layoutKey(doc: Pick<Doc, "triggers" | "steps" | "layout">): string {
	const shape = (steps: readonly Step[]): unknown =>
		steps.map((step) => [step.id, step.needs ?? null, isBlock(step) ? shape(step.steps ?? []) : 0]);
	return JSON.stringify([triggerKeys(doc), shape(doc.steps), doc.layout]);
}

function triggerKeys(doc: Pick<Doc, "triggers">): string[] {
	return doc.triggers.map((trigger) => triggerNode(trigger.id));
}

/** The width of the trigger row, and of the bar below it. */
function rowWidth(count: number): number {
	return Math.max(1, count) * (node.width + gap.node) - gap.node;
}

/** Moves everything so that a single first step would be at the origin. */
function originate(arranged: Arranged): Arranged {
	const bar = arranged.boxes.get(startNode) as Box;
	return shift(arranged, node.width / 2 - (bar.x + bar.width / 2), -gap.rank - start.height - bar.y);
}

function laid(
	id: string,
	kind: LaidNode["kind"],
	parent: string | null,
	box: Box,
	origin: { readonly x: number; readonly y: number },
	depth: number,
): LaidNode {
	return { id, kind, parent, ...box, absolute: { x: origin.x + box.x, y: origin.y + box.y }, depth };
}

/** The contents of blocks, each laid out once. */
class Bodies {
	private readonly arranged = new Map<string, Arranged>();
	private readonly children = new Map<string, GraphNode[]>();

	constructor(g: Graph) {
		for (const n of g.nodes.values()) {
			if (n.block === null) continue;
			this.children.set(n.block, [...(this.children.get(n.block) ?? []), n]);
		}
	}

	size(n: GraphNode): { width: number; height: number } {
		if (!isBlock(n.step)) return node;
		const body = extent(this.body(n.id));
		return {
			width: Math.max(frame.width, body.width + 2 * frame.padding),
			height: Math.max(frame.height, frame.header + frame.padding + body.height + frame.bottom),
		};
	}

	/** The layout of a block's contents, relative to the top left of the frame. */
	private body(block: string): Arranged {
		const known = this.arranged.get(block);
		if (known) return known;
		const items: Item[] = (this.children.get(block) ?? []).map((n) => ({ id: n.id, needs: n.needs, ...this.size(n) }));
		const own = arrange(items);
		const { x, y, width } = extent(own);
		const spare = Math.max(0, frame.width - 2 * frame.padding - width) / 2;
		const inside = shift(own, frame.padding + spare - x, frame.header + frame.padding - y);
		this.arranged.set(block, inside);
		return inside;
	}

	/** Adds the bends of edges inside blocks, from the origin of the canvas. */
	bends(nodes: readonly LaidNode[], out: Map<string, readonly Spot[]>): void {
		for (const { id, kind, absolute } of nodes) {
			if (kind !== "block") continue;
			for (const [edge, spots] of shift(this.body(id), absolute.x, absolute.y).bends) out.set(edge, spots);
		}
	}

	/** Adds a node and its contents. */
	collect(
		n: GraphNode,
		box: Box | undefined,
		parent: string | null,
		origin: { readonly x: number; readonly y: number },
		out: LaidNode[],
	): void {
		if (!box) return;
		const block = isBlock(n.step);
		const own = laid(n.id, block ? "block" : "step", parent, box, origin, n.path.length);
		out.push(own);
		if (!block) return;
		for (const child of this.children.get(n.id) ?? []) {
			this.collect(child, this.body(n.id).boxes.get(child.id), n.id, own.absolute, out);
		}
	}
}

function edgesOf(doc: Pick<Doc, "triggers">, g: Graph, bends: ReadonlyMap<string, readonly Spot[]>): LaidEdge[] {
	const edges: LaidEdge[] = triggerKeys(doc).map((key) => ({
		id: edgeId(key, startNode),
		source: key,
		target: startNode,
		kind: "trigger",
		block: null,
	}));
	for (const n of g.nodes.values()) {
		if (n.block !== null || n.needs.length > 0) continue;
		edges.push({ id: edgeId(startNode, n.id), source: startNode, target: n.id, kind: "start", block: null });
	}
	for (const edge of g.edges) {
		const kind = edge.implicit ? "implicit" : "explicit";
		const own = bends.get(edge.id);
		const ends = { source: edge.from, target: edge.to };
		edges.push({ id: edge.id, ...ends, kind, block: edge.block, ...(own && { bends: own }) });
	}
	return edges;
}
