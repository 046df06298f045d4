import type { Schema } from "@/api/client";

type Trigger = Schema["RunTrigger"];

/** What a new run gets of an old one, and the trigger that it pretends was fired; null for a start by hand. */
export interface Again {
	readonly trigger: string | null;
	readonly body: Schema["TriggerTest"];
}

/**
 * againOf returns how to run again with the same data. Headers and query only exist for a trigger that was called, so
 * that it has to be fired again; a start by hand has a payload only.
 */
export function againOf({ id, payload, payload_files, headers, query }: Trigger): Again {
	const body = { ...withFiles(payload, payload_files ?? []) };
	if (id === null || (headers === null && query === null)) return { trigger: null, body };
	return { trigger: id, body: { ...body, headers: headers ?? {}, query: query ?? {} } };
}

/** Members of the payload that are files are sent apart: inside it, a reference would be plain data. */
function withFiles(payload: Record<string, unknown>, pointers: readonly string[]) {
	const files: Record<string, string> = {};
	const rest = { ...payload };
	for (const pointer of pointers) {
		const name = pointer.slice(1).replaceAll("~1", "/").replaceAll("~0", "~");
		const value = payload[name];
		if (!pointer.startsWith("/") || pointer.indexOf("/", 1) >= 0 || !isReference(value)) continue;
		files[name] = value.$file;
		delete rest[name];
	}
	return Object.keys(files).length === 0 ? { payload: rest } : { payload: rest, files };
}

function isReference(value: unknown): value is { $file: string } {
	return typeof value === "object" && value !== null && "$file" in value && typeof value.$file === "string";
}
