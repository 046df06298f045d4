import { omit } from "../json";
import { detach, group, resolve, write } from "../level";
import { blockOf, type Place, put } from "../place";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, refuse } from "../types";

/**
 * Moves steps of one list to another place of the graph, as onto an edge, into a
 * block or out of one. They keep the connections among themselves; what came
 * after them comes after what they came after.
 */
export function move(doc: Doc, ids: readonly string[], place: Place): Edit {
	const moved = new Set(ids);
	const spots = ids.map((id) => find(doc.steps, id));
	const block = spots[0]?.block;
	if (block === undefined || spots.some((spot) => spot?.block !== block)) {
		return refuse(doc, "Only steps of one list can be moved together.");
	}
	if (touches(place, moved)) return { doc, select: ids };
	const target = blockOf(doc.steps, place);
	if (target === undefined) return refuse(doc, "The place where the step should go is gone.");
	const inside = new Set(idsOf(spots.flatMap((spot) => (spot ? [spot.step] : []))));
	if (target !== null && inside.has(target)) return refuse(doc, "A block cannot be moved into itself.");
	const entries = resolve(listOf(doc.steps, block) ?? []);
	const rest = withList(doc.steps, block, write(detach(entries, moved)));
	const steps = put(rest, group(entries, moved), place);
	if (!steps) return refuse(doc, "The place where the step should go is gone.");
	return { doc: { ...doc, steps, layout: omit(doc.layout, ...ids) }, select: ids };
}

/** Whether a place is named by what is moved: it is there already. */
function touches(place: Place, moved: ReadonlySet<string>): boolean {
	switch (place.at) {
		case "end":
			return false;
		case "edge":
			return moved.has(place.to) || (place.from !== null && moved.has(place.from));
		default:
			return place.step !== null && moved.has(place.step);
	}
}

/** Moves steps to the end of a block's body, or of the top. */
export function moveInto(doc: Doc, ids: readonly string[], block: string | null): Edit {
	return move(doc, ids, { at: "end", block });
}

/** Moves steps out of their block, to right after it. */
export function moveOut(doc: Doc, ids: readonly string[]): Edit {
	const block = ids[0] === undefined ? undefined : find(doc.steps, ids[0])?.block;
	if (block == null) return refuse(doc, "The step is in no block.");
	return move(doc, ids, { at: "after", step: block });
}
