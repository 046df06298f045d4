import { resolve } from "../level";
import { type Place, put } from "../place";
import { find, idsOf } from "../tree";
import { type Doc, type Edit, refuse } from "../types";
import { adopt } from "./adopt";
import type { Clip } from "./copy";

/** Where a paste goes: after the last of the selected steps, or at the end. */
export function pastePlace(doc: Pick<Doc, "steps">, selection: readonly string[]): Place {
	const step = selection.filter((id) => find(doc.steps, id)).at(-1);
	return step === undefined ? { at: "end", block: null } : { at: "after", step };
}

/** Puts copied steps at a place, with new ids where theirs are taken. */
export function paste(doc: Doc, clip: Clip, place: Place): Edit {
	if (clip.steps.length === 0) return refuse(doc, "There is nothing to paste.");
	const added = adopt(clip.steps, new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve(added), place);
	if (!steps) return refuse(doc, "The place where the steps should go is gone.");
	return { doc: { ...doc, steps }, select: added.map((step) => step.id) };
}
