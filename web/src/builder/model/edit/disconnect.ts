import { graph } from "../graph";
import { type Doc, type Edit, refuse } from "../types";
import { connect, withNeeds } from "./connect";

/** Makes a step no longer come after another one. */
export function disconnect(doc: Doc, from: string, to: string): Edit {
	if (!graph(doc).nodes.get(to)?.needs.includes(from)) return refuse(doc, "There is no such connection.");
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
	if (cut.refused !== undefined) return cut;
	const made = connect(cut.doc, end.from, end.to);
	return made.refused === undefined ? made : refuse(doc, made.refused);
}
