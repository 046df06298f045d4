import { isObject, type Json, type JsonObject } from "@/builder/model";

/** A member of a map while it is edited: its name may be empty, or there twice. */
export interface Row {
	readonly key: string;
	readonly name: string;
	readonly value: Json;
	/** Just added, so that typing goes on in it. */
	readonly fresh?: boolean;
}

export function rowsOf(value: Json | undefined): Row[] {
	if (!isObject(value)) return [];
	return Object.entries(value).map(([name, member], i) => ({ key: `${i}:${name}`, name, value: member }));
}

/** The object that rows make: the first of a name counts, and one without a name not at all. */
export function committed(rows: readonly Row[]): JsonObject | undefined {
	const out: Record<string, Json> = {};
	for (const { name, value } of rows) {
		if (name !== "" && !Object.hasOwn(out, name)) out[name] = value;
	}
	return Object.keys(out).length > 0 ? out : undefined;
}
