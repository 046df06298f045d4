import type { Json, JsonObject } from "./types";

export function isObject(value: unknown): value is JsonObject {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two plain values are equal, ignoring the order of keys. */
export function equal(a: unknown, b: unknown): boolean {
	if (a === b) return true;
	if (Array.isArray(a) && Array.isArray(b)) {
		return a.length === b.length && a.every((item, i) => equal(item, b[i]));
	}
	if (!isObject(a) || !isObject(b)) return false;
	const keys = definedKeys(a);
	return keys.length === definedKeys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
}

/** The keys whose value is not undefined. */
export function definedKeys(value: object): string[] {
	return Object.entries(value).flatMap(([key, member]) => (member === undefined ? [] : [key]));
}

/** A copy of an object without some keys; the same object if it has none of them. */
export function omit<T extends object>(value: T, ...keys: readonly string[]): T {
	if (!keys.some((key) => Object.hasOwn(value, key))) return value;
	return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key))) as T;
}

/** Maps all strings inside a value. */
export function mapStrings<T extends Json>(value: T, change: (text: string) => string): T {
	if (typeof value === "string") return change(value) as T;
	if (Array.isArray(value)) {
		const items: Json[] = value.map((item: Json) => mapStrings(item, change));
		return (items.every((item, i) => item === value[i]) ? value : items) as Json as T;
	}
	if (!isObject(value)) return value;
	return mapMembers(value, (member) => mapStrings(member, change)) as T;
}

function mapMembers(value: JsonObject, change: (member: Json) => Json): JsonObject {
	let same = true;
	const out = Object.entries(value).map(([key, member]) => {
		const changed = change(member);
		same &&= changed === member;
		return [key, changed] as const;
	});
	return same ? value : Object.fromEntries(out);
}
