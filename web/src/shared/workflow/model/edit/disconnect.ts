import { graph } from "../graph";
import { type Doc, type Edit, rejectEdit } from "../types";
import { connect, withNeeds } from "./connect";

/** Removes a connection between two steps. */
export function disconnect(doc: Doc, from: string, to: string): Edit {
	if (!graph(doc).nodes.get(to)?.needs.includes(from)) return rejectEdit(doc, "The connection no longer exists.");
	return { doc: withNeeds(doc, to, (needs) => needs.filter((need) => need !== from)), select: [to] };
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
