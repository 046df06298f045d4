import type { Schema } from "@/api/client";

export type Found = Schema["SearchResults"];

export const nothing: Found = { workflows: [], runs: [], templates: [] };

/** fold normalizes text for case-insensitive comparison, much as the server does. */
function fold(text: string): string {
	return text.normalize("NFKC").toLowerCase();
}

/** contains reports whether every word of the query occurs in the text. */
export function contains(text: string, query: string): boolean {
	const folded = fold(text);
	return fold(query)
		.split(/\s+/)
		.every((word) => folded.includes(word));
}

/**
 * narrow keeps those results of an earlier query that certainly match the new one. They
 * are shown until the new results arrive.
 */
export function narrow(found: Found, query: string): Found {
	const id = fold(query.trim());
	return {
		workflows: found.workflows.filter(
			(one) => contains(one.name, query) || (id.startsWith("wf_") && one.id.startsWith(id)),
		),
		runs: found.runs.filter((one) => id.startsWith("run_") && one.id.startsWith(id)),
		templates: found.templates.filter((one) => contains(one.title, query)),
	};
}
