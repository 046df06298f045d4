import { resolve, upstream, write } from "../level";
import { stepOf } from "../need";
import { find, listOf, withList } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";

/** Returns why a step cannot have a need, which may be a path; undefined if it can. */
export function whyNotConnect(doc: Pick<Doc, "steps">, need: string, to: string): string | undefined {
	const from = stepOf(need);
	if (from === to) return "A step cannot run after itself.";
	const source = find(doc.steps, from);
	const target = find(doc.steps, to);
	if (!source || !target) return "The step no longer exists.";
	if (source.block !== target.block) return "Steps inside a block cannot be connected to steps outside it.";
	const entries = resolve(listOf(doc.steps, target.block) ?? []);
	const own = entries[target.index];
	if (own?.needs.includes(need)) return "It already runs after that step.";
	if (upstream(entries, from).has(to)) return "The steps would wait for each other.";
	return undefined;
}

export function canConnect(doc: Pick<Doc, "steps">, need: string, to: string): boolean {
	return whyNotConnect(doc, need, to) === undefined;
}

/** Makes a step also run after another one, or on a path out of it. */
export function connect(doc: Doc, need: string, to: string): Edit {
	const why = whyNotConnect(doc, need, to);
	if (why !== undefined) return rejectEdit(doc, why);
	return { doc: withNeeds(doc, to, (needs) => [...needs, need]), select: [to] };
}

/** Changes the needs of one step. */
export function withNeeds(doc: Doc, id: string, change: (needs: readonly string[]) => readonly string[]): Doc {
	const block = find(doc.steps, id)?.block ?? null;
	const entries = resolve(listOf(doc.steps, block) ?? []).map((entry) =>
		entry.step.id === id ? { step: entry.step, needs: change(entry.needs) } : entry,
	);
	return { ...doc, steps: withList(doc.steps, block, write(entries)) };
}
