import { equal, isObject, omit } from "../model/json";
import type { Json, JsonObject } from "../model/types";

/** For each entry of the later list, the index it had in the earlier one; -1 if it is new. */
export function match(before: readonly Json[], after: readonly Json[]): number[] {
	return haveIds(before) && haveIds(after) ? matchIds(before, after) : matchPlaces(before, after);
}

function haveIds(list: readonly Json[]): list is readonly JsonObject[] {
	return list.every((entry) => isObject(entry) && typeof entry.id === "string");
}

/** Steps and triggers are the same when they have the same id, or another one and little else. */
function matchIds(before: readonly JsonObject[], after: readonly JsonObject[]): number[] {
	const at = new Map(before.map((entry, i) => [entry.id, i]));
	const ids = new Set(after.map((entry) => entry.id));
	const gone = before.flatMap((entry, i) => (ids.has(entry.id) ? [] : [i]));
	return after.map((entry) => {
		const own = at.get(entry.id);
		if (own !== undefined) return own;
		const renamed = gone.findIndex((i) => alike(before[i] as JsonObject, entry));
		return renamed < 0 ? -1 : (gone.splice(renamed, 1)[0] as number);
	});
}

function alike(a: JsonObject, b: JsonObject): boolean {
	const [x, y] = [a, b].map((entry) => omit(entry, "id", "needs", "if", "foreach", "repeat", "with", "steps"));
	return (
		equal(x, y) &&
		(a.with === undefined) === (b.with === undefined) &&
		(a.steps === undefined) === (b.steps === undefined)
	);
}

/** Other lists keep what is the same at both ends; between, entries are taken in turn. */
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
 * The members of the later object in the order in which they are written: those
 * that were there keep their order, and each new one comes after the members
 * that should stand before it.
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
