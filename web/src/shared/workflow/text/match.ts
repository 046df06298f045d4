import { equal, isObject, omit } from "../model/json";
import type { Json, JsonObject } from "../model/types";

/** The ids of steps or triggers in all lists. */
export interface Ids {
	/** Returns the id that an entry has in the text. */
	formerly(id: string): string;
	/** The ids in the text. */
	readonly written: ReadonlySet<string>;
	/** The ids in the text whose entries still exist. */
	readonly kept: ReadonlySet<string>;
}

/** The earlier index of each later entry; -1 if it is new. */
export function match(before: readonly Json[], after: readonly Json[], ids: Ids): number[] {
	return haveIds(before) && haveIds(after) ? matchIds(before, after, ids) : matchPlaces(before, after);
}

type Entry = JsonObject & { readonly id: string };

function haveIds(list: readonly Json[]): list is readonly Entry[] {
	return list.every((entry) => isObject(entry) && typeof entry.id === "string");
}

/**
 * Steps and triggers are matched by id or by a known rename. The text may be older than a
 * change made elsewhere; then an entry counts as renamed if it otherwise resembles one
 * that no longer exists.
 */
function matchIds(before: readonly Entry[], after: readonly Entry[], ids: Ids): number[] {
	const at = new Map(before.map((entry, i) => [entry.id, i]));
	const gone = before.flatMap((entry, i) => (ids.kept.has(entry.id) ? [] : [i]));
	return after.map((entry) => {
		const id = ids.formerly(entry.id);
		const own = at.get(id);
		if (own !== undefined) return own;
		if (ids.written.has(id)) return -1;
		const renamed = gone.findIndex((i) => sameApartFromId(before[i] as JsonObject, entry));
		return renamed < 0 ? -1 : (gone.splice(renamed, 1)[0] as number);
	});
}

function sameApartFromId(a: JsonObject, b: JsonObject): boolean {
	const [x, y] = [a, b].map((entry) => omit(entry, "id", "needs", "if", "foreach", "repeat", "with", "steps"));
	return (
		equal(x, y) &&
		(a.with === undefined) === (b.with === undefined) &&
		(a.steps === undefined) === (b.steps === undefined)
	);
}

/** Other lists match equal entries at both ends, and the entries in between by position. */
function matchPlaces(before: readonly Json[], after: readonly Json[]): number[] {
	let start = 0;
	while (start < before.length && start < after.length && equal(before[start], after[start])) start++;
	let end = 0;
	const most = Math.min(before.length, after.length) - start;
	while (end < most && equal(before[before.length - 1 - end], after[after.length - 1 - end])) end++;
	return after.map((_, i) => {
		if (i >= after.length - end) return i - after.length + before.length;
		return i < before.length - end ? i : -1;
	});
}

/**
 * The keys of the later object in output order: existing keys keep their order, and each
 * new one is inserted after the keys that precede it.
 */
export function mergeKeys(before: readonly string[], after: readonly string[]): string[] {
	const out = before.filter((key) => after.includes(key));
	for (const [i, key] of after.entries()) {
		if (before.includes(key)) continue;
		const earlier = new Set(after.slice(0, i));
		const at = out.findLastIndex((other) => earlier.has(other));
		out.splice(at + 1, 0, key);
	}
	return out;
}
