import { canConnect, type Doc, find, idsOf, isBlock, title, walk } from "@/shared/workflow/model";

export interface Candidate {
	readonly id: string;
	readonly name: string;
	/** What it is, or where it is. */
	readonly detail: string;
	readonly uses: string;
}

/** The steps that can be made to run after a given one. */
export function connectable(doc: Doc, from: string): Candidate[] {
	return candidates(doc).filter((one) => canConnect(doc, from, one.id));
}

export function candidates(doc: Doc): Candidate[] {
	return [...walk(doc.steps)].map(({ step, path }) => ({
		id: step.id,
		name: title(step),
		detail: [step.uses ?? (step.repeat ? "Repeat until" : "For each"), ...path].join(" · "),
		uses: step.uses ?? (step.repeat ? "repeat" : "foreach"),
	}));
}

/** The loops that steps can be moved into, except themselves and their current one. */
export function movableInto(doc: Doc, ids: readonly string[]): Candidate[] {
	const moved = new Set(idsOf(ids.flatMap((id) => find(doc.steps, id)?.step ?? [])));
	const here = find(doc.steps, ids[0] ?? "")?.block;
	const blocks = new Set([...walk(doc.steps)].filter(({ step }) => isBlock(step)).map(({ step }) => step.id));
	return candidates(doc).filter((one) => blocks.has(one.id) && !moved.has(one.id) && one.id !== here);
}
