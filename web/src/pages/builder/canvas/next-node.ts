import type { Laid, LaidNode } from "@/shared/workflow/layout/layout";
import type { Doc, Graph } from "@/shared/workflow/model";
import { placeholders } from "./build";

export type Direction = "up" | "down" | "left" | "right";

/**
 * Returns the node that an arrow key moves to: up and down along edges, into frames and
 * out of them, left and right among siblings. Undefined if there is none.
 */
export function nextNode(doc: Doc, g: Graph, laid: Laid, from: string, way: Direction): string | undefined {
	const boxes = new Map(laid.nodes.map((one) => [one.id, one]));
	if (way === "left" || way === "right") return beside(laid, boxes.get(from), way);
	if (from === placeholders.trigger) return way === "down" ? firstStep(g, boxes) : undefined;
	if (from === placeholders.step) return way === "up" ? firstTrigger(doc) : undefined;
	if (from.startsWith("@")) return way === "down" ? firstStep(g, boxes) : undefined;
	return way === "down" ? below(g, boxes, from) : above(doc, g, boxes, from);
}

function firstTrigger(doc: Doc): string {
	const [first] = doc.triggers;
	return first ? `@${first.id}` : placeholders.trigger;
}

function firstStep(g: Graph, boxes: ReadonlyMap<string, LaidNode>): string {
	return leftmost(inside(g, null, true), boxes) ?? placeholders.step;
}

/** The first or last steps of a list. */
function inside(g: Graph, block: string | null, first: boolean): string[] {
	return [...g.nodes.values()]
		.filter((node) => node.block === block && (first ? node.needs : node.followers).length === 0)
		.map((node) => node.id);
}

function below(g: Graph, boxes: ReadonlyMap<string, LaidNode>, from: string): string | undefined {
	const body = leftmost(inside(g, from, true), boxes);
	if (body !== undefined) return body;
	for (let node = g.nodes.get(from); node; node = node.block === null ? undefined : g.nodes.get(node.block)) {
		const next = leftmost(node.followers, boxes);
		if (next !== undefined) return next;
	}
	return undefined;
}

function above(doc: Doc, g: Graph, boxes: ReadonlyMap<string, LaidNode>, from: string): string | undefined {
	const node = g.nodes.get(from);
	const need = leftmost(node?.needs ?? [], boxes);
	if (need !== undefined) return need;
	return node?.block ?? firstTrigger(doc);
}

function leftmost(ids: readonly string[], boxes: ReadonlyMap<string, LaidNode>): string | undefined {
	return [...ids].sort((a, b) => (boxes.get(a)?.x ?? 0) - (boxes.get(b)?.x ?? 0))[0];
}

/** The nearest sibling at about the same height. */
function beside(laid: Laid, from: LaidNode | undefined, way: "left" | "right"): string | undefined {
	if (!from) return undefined;
	const sign = way === "right" ? 1 : -1;
	const far = (one: LaidNode) => (one.x + one.width / 2 - from.x - from.width / 2) * sign;
	const level = (one: LaidNode) => Math.abs(one.y - from.y);
	return laid.nodes
		.filter((one) => one.id !== from.id && one.kind !== "start" && one.kind !== "exit" && one.parent === from.parent)
		.filter((one) => (one.kind === "trigger") === (from.kind === "trigger") && far(one) > 0)
		.filter((one) => one.y < from.y + from.height && from.y < one.y + one.height)
		.sort((a, b) => far(a) - far(b) || level(a) - level(b))[0]?.id;
}
