import { omit } from "../json";
import { detach, group, onPathOutOf, resolve, write } from "../level";
import { blockOf, type Place, put } from "../place";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";
import { whyLeft } from "./remove";

/**
 * Moves steps of one list to another place in the graph: onto an edge, into a block or out
 * of one. They keep their connections among each other; their followers are connected to
 * their predecessors.
 */
export function move(doc: Doc, ids: readonly string[], place: Place): Edit {
	const moved = new Set(ids);
	const spots = ids.map((id) => find(doc.steps, id));
	const block = spots[0]?.block;
	if (block === undefined || spots.some((spot) => spot?.block !== block)) {
		return rejectEdit(doc, "Only steps at the same level can be moved together.");
	}
	if (touches(place, moved)) return { doc, select: ids };
	const target = blockOf(doc.steps, place);
	if (target === undefined) return rejectEdit(doc, "The place for the step no longer exists.");
	const inside = new Set(idsOf(spots.flatMap((spot) => (spot ? [spot.step] : []))));
	if (target !== null && inside.has(target)) return rejectEdit(doc, "A block cannot be moved into itself.");
	const entries = resolve(listOf(doc.steps, block) ?? []);
	const left = onPathOutOf(entries, moved);
	if (left) return rejectEdit(doc, whyLeft(left));
	const rest = withList(doc.steps, block, write(detach(entries, moved)));
	const steps = put(rest, group(entries, moved), place);
	if (!steps) return rejectEdit(doc, "The place for the step no longer exists.");
	return { doc: { ...doc, steps, layout: omit(doc.layout, ...ids) }, select: ids };
}

/** Whether a place refers to a moved step, which means that it is already there. */
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

/** Moves steps to the end of a block, or of the top level. */
export function moveInto(doc: Doc, ids: readonly string[], block: string | null): Edit {
	return move(doc, ids, { at: "end", block });
}

/** Moves steps out of their block, to right after it. */
export function moveOut(doc: Doc, ids: readonly string[]): Edit {
	const block = ids[0] === undefined ? undefined : find(doc.steps, ids[0])?.block;
	if (block == null) return rejectEdit(doc, "The step is not in a block.");
	return move(doc, ids, { at: "after", step: block });
}
