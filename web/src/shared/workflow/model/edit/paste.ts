import { resolve } from "../level";
import { type Place, put } from "../place";
import { find, idsOf } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";
import { adopt } from "./adopt";
import type { Clip } from "./copy";

/** Where to paste: after the last selected step, or at the end. */
export function pastePlace(doc: Pick<Doc, "steps">, selection: readonly string[]): Place {
	const step = selection.filter((id) => find(doc.steps, id)).at(-1);
	return step === undefined ? { at: "end", block: null } : { at: "after", step };
}

/** Inserts copied steps at a place, with new ids if theirs are taken. */
export function paste(doc: Doc, clip: Clip, place: Place): Edit {
	if (clip.steps.length === 0) return rejectEdit(doc, "There is nothing to paste.");
	const added = adopt(clip.steps, new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve(added), place);
	if (!steps) return rejectEdit(doc, "The place for the steps no longer exists.");
	return { doc: { ...doc, steps }, select: added.map((step) => step.id) };
}
