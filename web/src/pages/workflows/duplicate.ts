import { api, got, type Schema } from "@/api/client";
import { importWorkflow } from "@/shared/workflow/import";

const maxNameLength = 200;

/** copyName returns the initial name of a copy. Long names are truncated. */
export function copyName(name: string): string {
	const suffix = " (copy)";
	const letters = [...name];
	if (letters.length + suffix.length <= maxNameLength) return name + suffix;
	return `${letters.slice(0, maxNameLength - suffix.length - 1).join("")}…${suffix}`;
}

/** duplicate creates a draft with the same definition, source, layout and pinned data. */
export async function duplicate(id: string): Promise<Schema["Workflow"]> {
	const from = (await got(api.GET("/v1/workflows/{id}", { params: { path: { id } } }))) as Schema["Workflow"];
	const { description, triggers, steps, settings, layout, pinned, source } = from;
	// The source may contain the original name.
	const text = { source, source_stale: true };
	return importWorkflow({ name: copyName(from.name), description, triggers, steps, settings, layout, pinned, ...text });
}
