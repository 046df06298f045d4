import { freePaths } from "../model/edit/switch";
import { edgeId, type Graph, type GraphNode, graph } from "../model/graph";
import { needOn, pathsOf } from "../model/need";
import { type Doc, isBlock, type Step, triggerNode } from "../model/types";
import { mergePositions } from "./merge-positions";
import { type Arranged, arrange, extent, type Item, type Spot, shift } from "./rank";
import { around, type Box, exit, frame, gap, node, start, startNode } from "./size";

export interface LaidNode extends Box {
	readonly id: string;
	/** exit: a path of a switch that no step is on; its id is the need, such as size.big. */
	readonly kind: "start" | "trigger" | "step" | "block" | "exit";
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
	/** The path out of the source; undefined for the step as a whole. */
	readonly path?: string;
	/** From a trigger to the bar, from the bar to a first step, between steps, or to an exit. */
	readonly kind: "trigger" | "start" | "implicit" | "explicit" | "exit";
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
 * like any other. The first step of a plain list is at the origin. With `exits`, paths that no
 * step is on have a place too, where one can be added.
 */
export function layOut(doc: Pick<Doc, "triggers" | "steps" | "layout">, { exits = false } = {}): Laid {
	const g = graph(doc);
	const bodies = new Bodies(g, exits);
	const top = bodies.inside(null);
	const items = bodies.items(top).map((item) => (item.needs.length ? item : { ...item, needs: [startNode] }));
	const bar = { id: startNode, needs: [], width: rowWidth(doc.triggers.length), height: start.height };
	const auto = originate(arrange([bar, ...items]));
	const boxes = mergePositions(auto.boxes, items, triggerKeys(doc), doc.layout);
	const nodes: LaidNode[] = [];
	for (const id of [startNode, ...triggerKeys(doc)]) {
		const box = boxes.get(id);
		if (box) nodes.push(laid(id, id === startNode ? "start" : "trigger", null, box, { x: 0, y: 0 }, 0));
	}
	for (const n of top) bodies.collect(n, boxes, null, { x: 0, y: 0 }, nodes);
	const bounds = around(nodes.filter((n) => n.parent === null));
	// Once a step has a stored position, edges are routed without bends.
	const bends = new Map(top.some((n) => doc.layout[n.id]) ? [] : auto.bends);
	bodies.bends(nodes, bends);
	return { nodes, edges: [...edgesOf(doc, g, bends), ...bodies.exitEdges()], bounds };
}

/** Documents with the same key have the same layout. */
export function layoutKey(doc: Pick<Doc, "triggers" | "steps" | "layout">): string {
	const shape = (steps: readonly Step[]): unknown =>
		steps.map((step) => [
			step.id,
			step.needs ?? null,
			isBlock(step) ? shape(step.steps ?? []) : pathsOf(step).map(({ id }) => id),
		]);
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

/** The steps of each list; the contents of blocks are laid out once. */
class Bodies {
	private readonly arranged = new Map<string, Arranged>();
	private readonly children = new Map<string | null, GraphNode[]>();
	/** The exits of each switch. */
	private readonly exits = new Map<string, readonly string[]>();

	constructor(g: Graph, exits: boolean) {
		for (const n of g.nodes.values()) this.children.set(n.block, [...this.inside(n.block), n]);
		if (!exits) return;
		for (const list of this.children.values()) {
			const steps = list.map((n) => n.step);
			for (const n of list) this.exits.set(n.id, freePaths(steps, n.step));
		}
	}

	/** The steps of a block, or those at the top level. */
	inside(block: string | null): readonly GraphNode[] {
		return this.children.get(block) ?? [];
	}

	size(n: GraphNode): { width: number; height: number } {
		if (!isBlock(n.step)) return node;
		const body = extent(this.body(n.id));
		return {
			width: Math.max(frame.width, body.width + 2 * frame.padding),
			height: Math.max(frame.height, frame.header + frame.padding + body.height + frame.bottom),
		};
	}

	/** What is arranged of a list: its steps, and exits to the right of what is below a switch already. */
	items(list: readonly GraphNode[]): Item[] {
		return [
			...list.map((n) => ({ id: n.id, needs: n.needs, ...this.size(n) })),
			...list.flatMap((n) => this.exitsOf(n).map((id) => ({ id, needs: [n.id], ...exit }))),
		];
	}

	private exitsOf(n: GraphNode): string[] {
		return (this.exits.get(n.id) ?? []).map((path) => needOn(n.id, path));
	}

	exitEdges(): LaidEdge[] {
		return [...this.children.values()].flat().flatMap((n) =>
			this.exitsOf(n).map((id) => ({
				id: edgeId(n.id, id),
				source: n.id,
				target: id,
				kind: "exit" as const,
				block: n.block,
			})),
		);
	}

	/** The layout of a block's contents, relative to the top left of the frame. */
	private body(block: string): Arranged {
		const known = this.arranged.get(block);
		if (known) return known;
		const own = arrange(this.items(this.inside(block)));
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

	/** Adds a node with its contents and its exits. */
	collect(
		n: GraphNode,
		boxes: ReadonlyMap<string, Box>,
		parent: string | null,
		origin: { readonly x: number; readonly y: number },
		out: LaidNode[],
	): void {
		const box = boxes.get(n.id);
		if (!box) return;
		const block = isBlock(n.step);
		const own = laid(n.id, block ? "block" : "step", parent, box, origin, n.path.length);
		out.push(own);
		for (const id of this.exitsOf(n)) {
			const place = boxes.get(id);
			if (place) out.push(laid(id, "exit", parent, place, origin, n.path.length));
		}
		if (!block) return;
		for (const child of this.inside(n.id)) this.collect(child, this.body(n.id).boxes, n.id, own.absolute, out);
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
		const own = bends.get(edgeId(edge.from, edge.to));
		const ends = { source: edge.from, target: edge.to, ...(edge.path !== undefined && { path: edge.path }) };
		edges.push({ id: edge.id, ...ends, kind, block: edge.block, ...(own && { bends: own }) });
	}
	return edges;
}
