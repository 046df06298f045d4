import { isObject, type Json, type JsonObject } from "@/shared/workflow/model";

/** A map entry being edited: its name may be empty or a duplicate. */
export interface Row {
	readonly key: string;
	readonly name: string;
	readonly value: Json;
	/** Just added, so it gets the focus. */
	readonly fresh?: boolean;
}

export function rowsOf(value: Json | undefined): Row[] {
	if (!isObject(value)) return [];
	return Object.entries(value).map(([name, member], i) => ({ key: `${i}:${name}`, name, value: member }));
}

/** The object for the rows: the first of duplicate names wins, and empty names are skipped. */
export function committed(rows: readonly Row[]): JsonObject | undefined {
	const out: Record<string, Json> = {};
	for (const { name, value } of rows) {
		if (name !== "" && !Object.hasOwn(out, name)) out[name] = value;
	}
	return Object.keys(out).length > 0 ? out : undefined;
}
