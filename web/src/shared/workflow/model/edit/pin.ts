import { omit } from "../json";
import { find } from "../tree";
import { type Doc, type Edit, type Json, rejectEdit, triggerNode } from "../types";

/** The maximum size of the sample data of a step or trigger, in bytes of JSON. */
export const maxPin = 64 * 1024;

export function pinSize(value: Json): number {
	return new TextEncoder().encode(JSON.stringify(value)).length;
}

/** Stores the sample output of a step, or the sample data of a trigger by `@id`, for tests in the builder. */
export function pin(doc: Doc, id: string, value: Json): Edit {
	if (!find(doc.steps, id) && !doc.triggers.some((trigger) => triggerNode(trigger.id) === id))
		return rejectEdit(doc, "The step or trigger no longer exists.");
	if (pinSize(value) > maxPin) return rejectEdit(doc, "Pinned data can have at most 64 KiB.");
	return { doc: { ...doc, pinned: { ...doc.pinned, [id]: value } }, select: [id] };
}

export function unpin(doc: Doc, ids: readonly string[]): Edit {
	const pinned = omit(doc.pinned, ...ids);
	return { doc: pinned === doc.pinned ? doc : { ...doc, pinned }, select: ids };
}
