import { omit } from "../json";
import { find } from "../tree";
import { type Doc, type Edit, type Json, rejectEdit } from "../types";

/** The maximum size of a step's sample data, in bytes of JSON. */
export const maxPin = 64 * 1024;

export function pinSize(value: Json): number {
	return new TextEncoder().encode(JSON.stringify(value)).length;
}

/** Stores sample output for a step, for tests in the builder. */
export function pin(doc: Doc, id: string, value: Json): Edit {
	if (!find(doc.steps, id)) return rejectEdit(doc, "The step no longer exists.");
	if (pinSize(value) > maxPin) return rejectEdit(doc, "Pinned data can have at most 64 KiB.");
	return { doc: { ...doc, pinned: { ...doc.pinned, [id]: value } }, select: [id] };
}

export function unpin(doc: Doc, ids: readonly string[]): Edit {
	const pinned = omit(doc.pinned, ...ids);
	return { doc: pinned === doc.pinned ? doc : { ...doc, pinned }, select: ids };
}
