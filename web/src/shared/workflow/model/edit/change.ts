import { equal } from "../json";
import { negatedBy, negationWith, otherwiseOf } from "../otherwise";
import { get, set } from "../pointer";
import { find, listOf, nodeAt, withList } from "../tree";
import { type Doc, type Edit, type Json, rejectEdit, type Step } from "../types";
import { rename } from "./rename";

/**
 * Changes a field of a step at a relative JSON pointer such as /with/url; undefined
 * removes it. Changing an id updates all references, and changing a condition updates its
 * "otherwise" branches.
 */
export function change(doc: Doc, id: string, at: string, value: Json | undefined): Edit {
	const spot = find(doc.steps, id);
	if (!spot) return rejectEdit(doc, "The step no longer exists.");
	if (at === "/id") return typeof value === "string" ? rename(doc, id, value) : rejectEdit(doc, "A step needs an ID.");
	if (equal(get(spot.step, at), value)) return { doc, select: [id] };
	const changed = set(spot.step, at, value) as Step;
	const list = (listOf(doc.steps, spot.block) ?? []).map((step) => (step === spot.step ? changed : step));
	const next = { ...doc, steps: withList(doc.steps, spot.block, list) };
	return { doc: at === "/if" ? withOtherwise(doc, next, changed) : next, select: [id] };
}

/** Updates every "otherwise" of a step to the negation of its new condition. */
function withOtherwise(before: Doc, after: Doc, changed: Step): Doc {
	let doc = after;
	for (const other of otherwiseOf(before, changed.id)) {
		doc = change(doc, other, "/if", negationWith(negatedBy(before, other), changed.id, changed)).doc;
	}
	return doc;
}

/** Changes the value at an absolute JSON pointer: a field of a step, a trigger or the settings. */
export function changeAt(doc: Doc, at: string, value: Json | undefined): Edit {
	const node = nodeAt(doc, at);
	const step = node === undefined ? undefined : find(doc.steps, node);
	if (step && at === `${step.pointer}/if`) return change(doc, step.step.id, "/if", value);
	if (equal(get(doc, at), value)) return { doc, select: node ? [node] : [] };
	return { doc: set(doc, at, value) as Doc, select: node ? [node] : [] };
}
