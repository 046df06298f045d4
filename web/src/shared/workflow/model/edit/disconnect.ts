import { resolve } from "../level";
import { find, listOf } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";
import { connect, withNeeds } from "./connect";

/** Removes a need of a step. */
export function disconnect(doc: Doc, need: string, to: string): Edit {
	if (!needsOf(doc, to).includes(need)) return rejectEdit(doc, "The connection no longer exists.");
	return { doc: withNeeds(doc, to, (needs) => needs.filter((other) => other !== need)), select: [to] };
}

/** Replaces a need of a step by one on another path out of the same step. */
export function choosePath(doc: Doc, need: string, other: string, to: string): Edit {
	const needs = needsOf(doc, to);
	if (!needs.includes(need)) return rejectEdit(doc, "The connection no longer exists.");
	if (needs.includes(other)) return rejectEdit(doc, "It already runs after that path.");
	return { doc: withNeeds(doc, to, (own) => own.map((one) => (one === need ? other : one))), select: [to] };
}

function needsOf(doc: Doc, id: string): readonly string[] {
	const spot = find(doc.steps, id);
	const entry = spot && resolve(listOf(doc.steps, spot.block) ?? [])[spot.index];
	return entry?.needs ?? [];
}

/** Moves one end of a connection to another step. */
export function reconnect(
	doc: Doc,
	edge: { readonly from: string; readonly to: string },
	end: { readonly from: string; readonly to: string },
): Edit {
	if (edge.from === end.from && edge.to === end.to) return { doc, select: [edge.to] };
	const cut = disconnect(doc, edge.from, edge.to);
	if (cut.rejected !== undefined) return cut;
	const made = connect(cut.doc, end.from, end.to);
	return made.rejected === undefined ? made : rejectEdit(doc, made.rejected);
}
