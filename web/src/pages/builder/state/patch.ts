import type { Schema } from "@/api/client";
import { equal, isObject } from "@/shared/workflow/model";
import type { Snapshot } from "./snapshot";
import { textOf } from "./text";

/** Returns the patch that turns the stored workflow into the edited one. */
export function patchOf(stored: Snapshot, next: Snapshot): Schema["WorkflowPatch"] {
	const patch: Record<string, unknown> = {};
	if (next.name !== stored.name) patch.name = next.name;
	if (next.description !== stored.description) patch.description = next.description;
	for (const part of ["triggers", "steps"] as const) {
		if (!equal(next.doc[part], stored.doc[part])) patch[part] = next.doc[part];
	}
	for (const part of ["settings", "layout", "pinned"] as const) {
		const merge = mergeOf(stored.doc[part], next.doc[part], part === "settings");
		if (Object.keys(merge).length > 0) patch[part] = merge;
	}
	const text = next.written === null ? null : textOf(next);
	if (text !== stored.written) patch.source = text;
	return patch as Schema["WorkflowPatch"];
}

/** A merge patch: removed fields are null. */
function mergeOf(stored: object, next: object, deep: boolean): Record<string, unknown> {
	const from = stored as Record<string, unknown>;
	const to = next as Record<string, unknown>;
	const out: Record<string, unknown> = {};
	for (const key of Object.keys(from)) if (to[key] === undefined) out[key] = null;
	for (const key of Object.keys(to)) {
		const [before, after] = [from[key], to[key]];
		if (after === undefined || equal(after, before)) continue;
		out[key] = deep && isObject(before) && isObject(after) ? mergeOf(before, after, deep) : after;
	}
	return out;
}
