import { resolve, upstream, write } from "../level";
import { find, listOf, withList } from "../tree";
import { type Doc, type Edit, refuse } from "../types";

/** Why one step cannot be made to come after another; undefined if it can. */
export function whyNotConnect(doc: Pick<Doc, "steps">, from: string, to: string): string | undefined {
	if (from === to) return "A step cannot come after itself.";
	const source = find(doc.steps, from);
	const target = find(doc.steps, to);
	if (!source || !target) return "There is no such step.";
	if (source.block !== target.block) return "A block and what is around it cannot need each other's steps.";
	const entries = resolve(listOf(doc.steps, target.block) ?? []);
	const own = entries[target.index];
	if (own?.needs.includes(from)) return "It comes after that step already.";
	if (upstream(entries, from).has(to)) return "The steps would wait for each other.";
	return undefined;
}

export function canConnect(doc: Pick<Doc, "steps">, from: string, to: string): boolean {
	return whyNotConnect(doc, from, to) === undefined;
}

/** Makes a step come after another one too. */
export function connect(doc: Doc, from: string, to: string): Edit {
	const why = whyNotConnect(doc, from, to);
	if (why !== undefined) return refuse(doc, why);
	return { doc: withNeeds(doc, to, (needs) => [...needs, from]), select: [to] };
}

/** The document with the needs of one step changed. */
export function withNeeds(doc: Doc, id: string, change: (needs: readonly string[]) => readonly string[]): Doc {
	const block = find(doc.steps, id)?.block ?? null;
	const entries = resolve(listOf(doc.steps, block) ?? []).map((entry) =>
		entry.step.id === id ? { step: entry.step, needs: change(entry.needs) } : entry,
	);
	return { ...doc, steps: withList(doc.steps, block, write(entries)) };
}
