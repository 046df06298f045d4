import { omit } from "../json";
import { find } from "../tree";
import { type Doc, type Edit, type Json, refuse } from "../types";

/** How much sample data a step can have, in bytes of JSON. */
export const maxPin = 64 * 1024;

export function pinSize(value: Json): number {
	return new TextEncoder().encode(JSON.stringify(value)).length;
}

/** Keeps sample output for a step, for tests in the builder. */
export function pin(doc: Doc, id: string, value: Json): Edit {
	if (!find(doc.steps, id)) return refuse(doc, "There is no such step.");
	if (pinSize(value) > maxPin) return refuse(doc, "Pinned data can have at most 64 KiB.");
	return { doc: { ...doc, pinned: { ...doc.pinned, [id]: value } }, select: [id] };
}

export function unpin(doc: Doc, ids: readonly string[]): Edit {
	const pinned = omit(doc.pinned, ...ids);
	return { doc: pinned === doc.pinned ? doc : { ...doc, pinned }, select: ids };
}
