import type { Edge, Node } from "@xyflow/react";
import { Position } from "@xyflow/react";
import { boxOf, type LineData, linesOf } from "@/shared/canvas/elements";
import { type Laid, type LaidNode, layOut } from "@/shared/workflow/layout/layout";
import { gap, node, start, startNode } from "@/shared/workflow/layout/size";
import type { Doc } from "@/shared/workflow/model";

// Turns the document into what the canvas draws. Unchanged objects are reused, so that only changes re-render.

/** Placeholder nodes that invite the user to add something. */
export const placeholders = { trigger: "#trigger", step: "#step", more: "#more" } as const;

export type CanvasNode = Node<Record<string, never>, "step" | "block" | "trigger" | "start" | "exit" | "ghost">;
export type CanvasEdge = Edge<LineData, "link">;

export interface Drawing {
	readonly nodes: CanvasNode[];
	readonly edges: CanvasEdge[];
	readonly laid: Laid;
}

const nothing: Record<string, never> = {};
const addButtonSize = 32;
/** The wrapper has no role; the focusable element inside it does. */
const wrapperAttributes = { "aria-roledescription": undefined };

export function draw(doc: Pick<Doc, "triggers" | "steps" | "layout">, readOnly: boolean): Drawing {
	const laid = layOut(doc, { exits: !readOnly });
	const nodes = laid.nodes.map((one) => nodeOf(one, readOnly));
	return { nodes: readOnly ? nodes : [...nodes, ...placeholderNodes(doc, laid)], edges: edgesOf(laid), laid };
}

function nodeOf(one: LaidNode, readOnly: boolean): CanvasNode {
	const { kind, parent, width, height, depth } = one;
	return {
		...boxOf(one),
		measured: { width, height },
		handles: handlesOf(kind, width, height),
		data: nothing,
		zIndex: depth * 2,
		domAttributes: wrapperAttributes,
		draggable: !readOnly && kind !== "start" && kind !== "exit",
		selectable: kind !== "start" && kind !== "exit",
		connectable: !readOnly && kind !== "exit",
		...(parent === null ? {} : { extent: "parent" as const }),
	};
}

/** Handle positions are set in advance, so that edges are drawn in the first paint. */
function handlesOf(kind: LaidNode["kind"], width: number, height: number): CanvasNode["handles"] {
	const x = width / 2;
	const top = { type: "target" as const, position: Position.Top, x, y: 0, width: 1, height: 1 };
	const bottom = { type: "source" as const, position: Position.Bottom, x, y: height, width: 1, height: 1 };
	return kind === "trigger" ? [bottom] : [top, bottom];
}

function placeholderNodes(doc: Pick<Doc, "triggers" | "steps">, laid: Laid): CanvasNode[] {
	const out: CanvasNode[] = [];
	const bar = laid.nodes.find((one) => one.id === startNode);
	if (!bar) return out;
	const middle = bar.x + bar.width / 2;
	if (doc.triggers.length === 0) {
		out.push(
			placeholderNode(
				placeholders.trigger,
				middle - node.width / 2,
				bar.y - start.gap - node.height,
				node.width,
				node.height,
			),
		);
	} else {
		const last = laid.nodes.filter((one) => one.kind === "trigger").reduce((a, b) => (b.x > a.x ? b : a));
		out.push(
			placeholderNode(
				placeholders.more,
				last.x + last.width + 16,
				last.y + (last.height - addButtonSize) / 2,
				addButtonSize,
				addButtonSize,
			),
		);
	}
	if (doc.steps.length === 0) {
		out.push(
			placeholderNode(
				placeholders.step,
				middle - node.width / 2,
				bar.y + bar.height + gap.rank,
				node.width,
				node.height,
			),
		);
	}
	return out;
}

function placeholderNode(id: string, x: number, y: number, width: number, height: number): CanvasNode {
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
		domAttributes: wrapperAttributes,
	};
}

function edgesOf(laid: Laid): CanvasEdge[] {
	return linesOf(laid).map((line) => ({
		...line,
		type: "link",
		selectable: line.data.kind === "implicit" || line.data.kind === "explicit",
	}));
}

/** The new nodes, reusing unchanged objects from before. */
export function reuse<T extends { id: string }>(before: readonly T[], next: readonly T[]): T[] {
	const known = new Map(before.map((one) => [one.id, one]));
	return next.map((one) => {
		const old = known.get(one.id);
		return old && shallowEqual(old, one) ? old : one;
	});
}

function shallowEqual(a: object, b: object): boolean {
	const keys = Object.keys(b);
	return keys.every((key) => {
		const [x, y] = [a[key as keyof typeof a] as unknown, b[key as keyof typeof b] as unknown];
		return x === y || (typeof x === "object" && JSON.stringify(x) === JSON.stringify(y));
	});
}
