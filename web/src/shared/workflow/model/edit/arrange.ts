import { equal, omit } from "../json";
import type { Doc, Edit, Point } from "../types";

const grid = 8;

function snap(value: number): number {
	return Math.round(value / grid) * grid + 0;
}

/** Sets the positions of top-level nodes. Steps inside blocks have none. */
export function placeNodes(doc: Doc, places: Readonly<Record<string, Point>>): Edit {
	const top = new Set([...doc.steps.map((step) => step.id), ...doc.triggers.map((trigger) => `@${trigger.id}`)]);
	const layout: Record<string, Point> = { ...doc.layout };
	for (const [node, [x, y]] of Object.entries(places)) {
		if (top.has(node)) layout[node] = [snap(x), snap(y)];
	}
	const select = Object.keys(places);
	return equal(layout, doc.layout) ? { doc, select } : { doc: { ...doc, layout }, select };
}

/** Removes all stored positions, or those of some nodes, so that they are laid out automatically. */
export function tidy(doc: Doc, nodes?: readonly string[]): Edit {
	const layout = nodes ? omit(doc.layout, ...nodes) : {};
	return { doc: equal(layout, doc.layout) ? doc : { ...doc, layout }, select: nodes ?? [] };
}
