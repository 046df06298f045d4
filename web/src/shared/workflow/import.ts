import { api, got, type Schema } from "@/api/client";
import type { ApiError } from "@/api/error";

/** A problem in the text, with its position. */
export interface Problem {
	message: string;
	pointer?: string;
	line?: number;
	column?: number;
}

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

/** problemsOf returns the problems that the server found in the text. */
export function problemsOf(error: ApiError): Problem[] {
	return error.fields.map(({ pointer, message, line, column }) => ({ pointer, message, line, column }));
}

/** offsetOf converts a line and a column, both starting at 1, to an offset. */
export function offsetOf(text: string, line: number, column: number): number {
	const lines = text.split(/\r\n|\r|\n/);
	let at = 0;
	for (let n = 0; n < Math.min(line - 1, lines.length - 1); n++) {
		at += (lines[n] as string).length;
		at += text.startsWith("\r\n", at) ? 2 : 1;
	}
	const own = lines[Math.min(line, lines.length) - 1] as string;
	return at + [...own].slice(0, column - 1).join("").length;
}
