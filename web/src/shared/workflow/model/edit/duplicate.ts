import { find, listOf } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";
import { copy } from "./copy";
import { paste } from "./paste";

/** Duplicates steps of one list, right after the last of them. */
export function duplicate(doc: Doc, ids: readonly string[]): Edit {
	const first = ids[0] === undefined ? undefined : find(doc.steps, ids[0]);
	if (!first) return rejectEdit(doc, "There is nothing to duplicate.");
	const last = (listOf(doc.steps, first.block) ?? []).filter((step) => ids.includes(step.id)).at(-1);
	return paste(doc, copy(doc, ids), { at: "after", step: last?.id ?? first.step.id });
}
