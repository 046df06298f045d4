import { equal } from "../json";
import { get, set } from "../pointer";
import { find, listOf, nodeAt, withList } from "../tree";
import { type Doc, type Edit, type Json, refuse, type Step } from "../types";
import { rename } from "./rename";

/**
 * Changes a field of a step, at a JSON pointer inside it such as /with/url;
 * undefined removes it. An id is changed wherever it is named.
 */
export function change(doc: Doc, id: string, at: string, value: Json | undefined): Edit {
	const spot = find(doc.steps, id);
	if (!spot) return refuse(doc, "There is no such step.");
	if (at === "/id") return typeof value === "string" ? rename(doc, id, value) : refuse(doc, "A step needs an id.");
	if (equal(get(spot.step, at), value)) return { doc, select: [id] };
	const changed = set(spot.step, at, value) as Step;
	const list = (listOf(doc.steps, spot.block) ?? []).map((step) => (step === spot.step ? changed : step));
	return { doc: { ...doc, steps: withList(doc.steps, spot.block, list) }, select: [id] };
}

/** Changes whatever a JSON pointer from the top leads to: a field of a step, a trigger or the settings. */
export function changeAt(doc: Doc, at: string, value: Json | undefined): Edit {
	const node = nodeAt(doc, at);
	if (equal(get(doc, at), value)) return { doc, select: node ? [node] : [] };
	return { doc: set(doc, at, value) as Doc, select: node ? [node] : [] };
}
