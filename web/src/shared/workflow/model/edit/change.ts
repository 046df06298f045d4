import { equal } from "../json";
import { get, set } from "../pointer";
import { find, listOf, nodeAt, withList } from "../tree";
import { type Doc, type Edit, type Json, rejectEdit, type Step } from "../types";
import { rename } from "./rename";

/**
 * Changes a field of a step at a relative JSON pointer such as /with/url; undefined
 * removes it. Changing an id updates all references.
 */
export function change(doc: Doc, id: string, at: string, value: Json | undefined): Edit {
	const spot = find(doc.steps, id);
	if (!spot) return rejectEdit(doc, "The step no longer exists.");
	if (at === "/id") return typeof value === "string" ? rename(doc, id, value) : rejectEdit(doc, "A step needs an ID.");
	if (equal(get(spot.step, at), value)) return { doc, select: [id] };
	const changed = set(spot.step, at, value) as Step;
	const list = (listOf(doc.steps, spot.block) ?? []).map((step) => (step === spot.step ? changed : step));
	return { doc: { ...doc, steps: withList(doc.steps, spot.block, list) }, select: [id] };
}

/** Changes the value at an absolute JSON pointer: a field of a step, a trigger or the settings. */
export function changeAt(doc: Doc, at: string, value: Json | undefined): Edit {
	const node = nodeAt(doc, at);
	if (equal(get(doc, at), value)) return { doc, select: node ? [node] : [] };
	return { doc: set(doc, at, value) as Doc, select: node ? [node] : [] };
}
