import { api, got, type Schema } from "@/api/client";
import { made } from "./made";

const longest = 200;

/** copyName is what a copy is called at first; a long name gives way at its end. */
export function copyName(name: string): string {
	const suffix = " (copy)";
	const letters = [...name];
	if (letters.length + suffix.length <= longest) return name + suffix;
	return `${letters.slice(0, longest - suffix.length - 1).join("")}…${suffix}`;
}

const change = (id: string, body: Schema["WorkflowPatch"]) =>
	got(api.PATCH("/v1/workflows/{id}", { params: { path: { id } }, body }));

/** duplicate makes a draft of the same definition, with its text, places and samples. */
export async function duplicate(id: string): Promise<Schema["Workflow"]> {
	const from = (await got(api.GET("/v1/workflows/{id}", { params: { path: { id } } }))) as Schema["Workflow"];
	const { description, triggers, steps, settings, layout, pinned, source, source_stale } = from;
	const name = copyName(from.name);
	return made(name, async (copy) => {
		if (source === null || source_stale)
			return change(copy, { description, triggers, steps, settings, layout, pinned });
		await change(copy, { source });
		// The text may say the name of the original.
		return change(copy, { name, description, layout, pinned });
	});
}
