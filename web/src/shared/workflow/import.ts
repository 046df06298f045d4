import { api, got, type Schema } from "@/api/client";

const longestName = 200;

/** importWorkflow creates a draft from a complete workflow. */
export function importWorkflow(body: Schema["WorkflowImport"]): Promise<Schema["Workflow"]> {
	return got(api.POST("/v1/workflows/import", { body }));
}

/** importText creates a draft from YAML or JSON. `name` is used if the text has none. */
export function importText(text: string, name: string): Promise<Schema["Workflow"]> {
	return got(
		api.POST("/v1/workflows/import", {
			params: { query: { name } },
			headers: { "Content-Type": isJson(text) ? "application/json" : "application/yaml" },
			body: {},
			bodySerializer: () => text,
		}),
	);
}

/** isJson distinguishes JSON from YAML by the first character, because a workflow is an object. */
export function isJson(text: string): boolean {
	return text.trimStart().startsWith("{");
}

/** nameFor derives the name of a workflow from its file name. */
export function nameFor(file: string | undefined): string {
	const name = (file ?? "").replace(/\.[^.]*$/, "").trim() || "Imported workflow";
	return [...name].slice(0, longestName).join("");
}
