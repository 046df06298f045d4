import { freshId } from "../id";
import { omit } from "../json";
import { type Entry, group, onPathOutOf, resolve, upstream, write } from "../level";
import { stepOf } from "../need";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, type Repeat, rejectEdit, type Step } from "../types";
import { whyLeft } from "./remove";

export type Loop = { readonly foreach: string; readonly parallel?: number } | { readonly repeat: Repeat };

/** Wraps steps of one list in a new block, in their place. */
export function wrap(doc: Doc, ids: readonly string[], loop: Loop): Edit {
	const inside = new Set(ids);
	const spots = ids.map((id) => find(doc.steps, id));
	const block = spots[0]?.block;
	if (block === undefined || spots.some((spot) => spot?.block !== block)) {
		return rejectEdit(doc, "Only steps at the same level can be wrapped together.");
	}
	const entries = resolve(listOf(doc.steps, block) ?? []);
	const left = onPathOutOf(entries, inside);
	if (left) return rejectEdit(doc, whyLeft(left));
	const needs = outsideNeeds(entries, inside);
	if (needs.some((need) => [...upstream(entries, stepOf(need))].some((id) => inside.has(id)))) {
		return rejectEdit(doc, "The steps between them must go into the block too.");
	}
	const id = freshId("foreach" in loop ? "each" : "repeat", new Set(idsOf(doc.steps)));
	const around: Step = { id, ...loop, steps: write(group(entries, inside)) };
	const list = replaceGroup(entries, inside, { step: around, needs });
	return {
		doc: { ...doc, steps: withList(doc.steps, block, write(list)), layout: omit(doc.layout, ...ids) },
		select: [id],
	};
}

function outsideNeeds(entries: readonly Entry[], inside: ReadonlySet<string>): string[] {
	const own = entries.filter((entry) => inside.has(entry.step.id));
	return [...new Set(own.flatMap((entry) => entry.needs))].filter((need) => !inside.has(stepOf(need)));
}

/** Replaces a group of entries with one, at the position of the first. */
function replaceGroup(entries: readonly Entry[], inside: ReadonlySet<string>, by: Entry): Entry[] {
	const out: Entry[] = [];
	let placed = false;
	for (const entry of entries) {
		if (!inside.has(entry.step.id)) {
			const needs = entry.needs.map((need) => (inside.has(need) ? by.step.id : need));
			out.push({ step: entry.step, needs: [...new Set(needs)] });
		} else if (!placed) {
			out.push(by);
			placed = true;
		}
	}
	return out;
}
