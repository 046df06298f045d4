import { omit } from "./json";
import { type Entry, indexOf, leaves, replaceNeed, resolve, roots, substitute, write } from "./level";
import { pathOf, stepOf } from "./need";
import { find, listOf, withList } from "./tree";
import type { Step } from "./types";

/** A place in the graph. A need is the id of a step, or a path out of it. */
export type Place =
	/** After a need; what has it then runs after what is inserted. */
	| { readonly at: "after"; readonly step: string }
	| { readonly at: "before"; readonly step: string }
	/** Between a need and the step that has it; null stands for the start. */
	| { readonly at: "edge"; readonly from: string | null; readonly to: string }
	/** After a need or the start, in parallel to its other followers. */
	| { readonly at: "branch"; readonly step: string | null }
	/** At the end of a list: that of a block, or the top level. */
	| { readonly at: "end"; readonly block: string | null };

/** The block of a place, null at the top level; undefined if the place does not exist. */
export function blockOf(steps: readonly Step[], place: Place): string | null | undefined {
	switch (place.at) {
		case "end":
			return listOf(steps, place.block) && place.block;
		case "edge":
			return isEdge(steps, place.from, place.to) ? find(steps, place.to)?.block : undefined;
		default:
			return place.step === null ? null : find(steps, stepOf(place.step))?.block;
	}
}

/** Whether the edge exists; the start leads to steps without needs. */
function isEdge(steps: readonly Step[], from: string | null, to: string): boolean {
	const spot = find(steps, to);
	const needs = spot && resolve(listOf(steps, spot.block) ?? [])[spot.index]?.needs;
	if (!needs) return false;
	return from === null ? needs.length === 0 : needs.includes(from);
}

/** Inserts a group at a place; undefined if the place does not exist. */
export function put(steps: readonly Step[], entries: readonly Entry[], place: Place): readonly Step[] | undefined {
	const block = blockOf(steps, place);
	const list = block === undefined ? undefined : listOf(steps, block);
	if (block === undefined || !list) return undefined;
	return withList(steps, block, write(putInto(resolve(list), entries, place)));
}

/** Inserts a group at a place within one list. */
export function putInto(list: readonly Entry[], entries: readonly Entry[], place: Place): Entry[] {
	const ends = leaves(entries);
	switch (place.at) {
		case "after": {
			// The first step on a path goes to the right of those on other paths.
			const free = pathOf(place.step) !== undefined && !list.some(({ needs }) => needs.includes(place.step));
			if (free) return putInto(list, entries, { at: "branch", step: place.step });
			const i = indexOf(list, stepOf(place.step));
			return splice(replaceNeed(list, place.step, ends), i + 1, follow(entries, [place.step]));
		}
		case "before": {
			const i = indexOf(list, place.step);
			const moved = list.map((entry, n) => (n === i ? { step: entry.step, needs: ends } : entry));
			return splice(moved, i, follow(entries, list[i]?.needs ?? []));
		}
		case "edge":
			return onEdge(list, entries, place.from, place.to);
		case "branch":
			return splice(list, branchIndex(list, place.step), follow(entries, place.step === null ? [] : [place.step]));
		case "end": {
			const last = list.at(-1);
			return splice(list, list.length, follow(entries, last ? [last.step.id] : []));
		}
	}
}

/** The group goes right before the target of the edge, which changes anyway, so that no other step is rewritten. */
function onEdge(list: readonly Entry[], entries: readonly Entry[], from: string | null, to: string): Entry[] {
	const ends = leaves(entries);
	const moved = list.map((entry) => {
		if (entry.step.id !== to) return entry;
		return from === null ? { step: entry.step, needs: ends } : substitute(entry, from, ends);
	});
	return splice(moved, indexOf(list, to), follow(entries, from === null ? [] : [from]));
}

/** After the last follower and the steps that implicitly follow it, so that none of them has to be rewritten. */
function branchIndex(list: readonly Entry[], step: string | null): number {
	const from = step === null ? null : stepOf(step);
	let i = from === null ? -1 : indexOf(list, from);
	for (const [n, { needs }] of list.entries()) {
		if (from === null ? needs.length === 0 : needs.some((need) => stepOf(need) === from)) i = Math.max(i, n);
	}
	i++;
	while (i < list.length && list[i]?.step.needs === undefined) i++;
	return i;
}

/** Makes the first steps of the group run after the given ones, and rewrites the needs within it. */
function follow(entries: readonly Entry[], needs: readonly string[]): Entry[] {
	const first = new Set(roots(entries));
	return entries.map((entry) => ({
		step: omit(entry.step, "needs"),
		needs: first.has(entry.step.id) ? needs : entry.needs,
	}));
}

function splice(list: readonly Entry[], at: number, entries: readonly Entry[]): Entry[] {
	return [...list.slice(0, at), ...entries, ...list.slice(at)];
}
