import type { Schema } from "@/api/client";
import type { ApiError } from "@/api/error";
import { locate } from "@/builder/text/locate";
import { type Parsed, readYaml } from "@/builder/text/yaml";

/** A mistake in a text, where it is. */
export interface Problem {
	message: string;
	pointer?: string;
	line?: number;
	column?: number;
}

export interface Import {
	name: string;
	body: Schema["WorkflowPatch"];
	parsed: Parsed;
}

const members = ["name", "description", "triggers", "steps", "settings", "layout"] as const;

/**
 * readImport reads a workflow from YAML or JSON. YAML is kept as it was written.
 * JSON may be what the API answers for a workflow: what is not part of its
 * definition, such as its id, is left out.
 */
export function readImport(text: string, file?: string): Import | { problems: Problem[] } {
	const json = text.trimStart().startsWith("{");
	// JSON has tabs between its values only, where YAML takes spaces.
	const parsed = readYaml(json ? text.replaceAll("\t", " ") : text);
	if ("error" in parsed) {
		const { message, line, column, pointer } = parsed.error;
		return { problems: [{ message, line, column, pointer }] };
	}
	const value = parsed.value as Record<string, unknown> | null;
	if (typeof value !== "object" || value === null || Array.isArray(value))
		return { problems: [{ message: "a workflow is an object with a name, triggers and steps", line: 1, column: 1 }] };
	const said = typeof value.name === "string" ? value.name.trim() : "";
	const name = [...(said || (file ?? "").replace(/\.[^.]*$/, "").trim() || "Imported workflow")].slice(0, 200).join("");
	if (!json) return { name, body: { source: text }, parsed };
	const body = Object.fromEntries(members.filter((member) => member in value).map((member) => [member, value[member]]));
	return { name, body, parsed };
}

/** problemsOf are the server's errors, each with its place in the text. */
export function problemsOf(error: ApiError, parsed: Parsed): Problem[] {
	if (error.fields.length === 0) return [{ message: error.message }];
	return error.fields.map(({ pointer, message, line, column }) => {
		if (line !== undefined) return { message, pointer, line, column };
		const place = locate(parsed, pointer);
		return { message, pointer, line: place.line, column: place.column };
	});
}

/** offsetOf is where a line and column, both from 1, are in a text. */
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
