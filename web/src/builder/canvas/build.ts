import type { Edge, Node } from "@xyflow/react";
import { Position } from "@xyflow/react";
import { type Laid, type LaidEdge, type LaidNode, layOut } from "@/builder/layout/layout";
import { gap, node, start, startNode } from "@/builder/layout/size";
import type { Doc } from "@/builder/model";

// From the document to what the canvas draws. Objects are reused where nothing
// changed, so that only what did is drawn again.

/** Places that invite to add something. */
export const ghosts = { trigger: "#trigger", step: "#step", more: "#more" } as const;

export type CanvasNode = Node<Record<string, never>, "step" | "block" | "trigger" | "start" | "ghost">;
export interface LinkData extends Record<string, unknown> {
	readonly kind: LaidEdge["kind"];
	readonly block: string | null;
	/** The line of a trigger that stands above the bar goes straight down. */
	readonly straight: boolean;
	readonly bends?: LaidEdge["bends"];
}

export type CanvasEdge = Edge<LinkData, "link">;

export interface Drawing {
	readonly nodes: CanvasNode[];
	readonly edges: CanvasEdge[];
	readonly laid: Laid;
}

const nothing: Record<string, never> = {};
const more = 32;
/** The node itself says nothing: what has the focus inside it does. */
const plain = { "aria-roledescription": undefined };

export function draw(doc: Pick<Doc, "triggers" | "steps" | "layout">, fixed: boolean): Drawing {
	const laid = layOut(doc);
	const nodes = laid.nodes.map((one) => nodeOf(one, fixed));
	return { nodes: fixed ? nodes : [...nodes, ...ghostsOf(doc, laid)], edges: edgesOf(laid), laid };
}

function nodeOf(one: LaidNode, fixed: boolean): CanvasNode {
	const { id, kind, parent, x, y, width, height, depth } = one;
	return {
		id,
		type: kind,
		position: { x, y },
		width,
		height,
		measured: { width, height },
		handles: handlesOf(kind, width, height),
		data: nothing,
		zIndex: depth * 2,
		domAttributes: plain,
		draggable: !fixed && kind !== "start",
		selectable: kind !== "start",
		connectable: !fixed,
		...(parent === null ? {} : { parentId: parent, extent: "parent" as const }),
	};
}

/** Handles are where their nodes say, so that edges are drawn with the first paint. */
function handlesOf(kind: LaidNode["kind"], width: number, height: number): CanvasNode["handles"] {
	const x = width / 2;
	const top = { type: "target" as const, position: Position.Top, x, y: 0, width: 1, height: 1 };
	const bottom = { type: "source" as const, position: Position.Bottom, x, y: height, width: 1, height: 1 };
	return kind === "trigger" ? [bottom] : [top, bottom];
}

function ghostsOf(doc: Pick<Doc, "triggers" | "steps">, laid: Laid): CanvasNode[] {
	const out: CanvasNode[] = [];
	const bar = laid.nodes.find((one) => one.id === startNode);
	if (!bar) return out;
	const middle = bar.x + bar.width / 2;
	if (doc.triggers.length === 0) {
		out.push(ghost(ghosts.trigger, middle - node.width / 2, bar.y - start.gap - node.height, node.width, node.height));
	} else {
		const last = laid.nodes.filter((one) => one.kind === "trigger").reduce((a, b) => (b.x > a.x ? b : a));
		out.push(ghost(ghosts.more, last.x + last.width + 16, last.y + (last.height - more) / 2, more, more));
	}
	if (doc.steps.length === 0) {
		out.push(ghost(ghosts.step, middle - node.width / 2, bar.y + bar.height + gap.rank, node.width, node.height));
	}
	return out;
}

function ghost(id: string, x: number, y: number, width: number, height: number): CanvasNode {
	return {
		id,
		type: "ghost",
		position: { x, y },
		width,
		height,
		measured: { width, height },
		data: nothing,
		draggable: false,
		selectable: false,
		connectable: false,
		domAttributes: plain,
	};
}

function edgesOf(laid: Laid): CanvasEdge[] {
	const boxes = new Map(laid.nodes.map((one) => [one.id, one]));
	const bar = boxes.get(startNode);
	return laid.edges.map(({ id, source, target, kind, block, bends }) => {
		const from = boxes.get(source);
		const middle = from ? from.x + from.width / 2 : 0;
		const over = bar !== undefined && middle > bar.x + 16 && middle < bar.x + bar.width - 16;
		return {
			id,
			source,
			target,
			type: "link",
			data: { kind, block, straight: kind === "trigger" && over, bends },
			selectable: kind === "implicit" || kind === "explicit",
			zIndex: block === null ? 0 : 1,
		};
	});
}

/** The new nodes, with those taken over from before that did not change. */
export function reuse<T extends { id: string }>(before: readonly T[], next: readonly T[]): T[] {
	const known = new Map(before.map((one) => [one.id, one]));
	return next.map((one) => {
		const old = known.get(one.id);
		return old && alike(old, one) ? old : one;
	});
}

function alike(a: object, b: object): boolean {
	const keys = Object.keys(b);
	return keys.every((key) => {
		const [x, y] = [a[key as keyof typeof a] as unknown, b[key as keyof typeof b] as unknown];
		return x === y || (typeof x === "object" && JSON.stringify(x) === JSON.stringify(y));
	});
}
