import { renameIn } from "../expressions";
import { freshId } from "../id";
import { walk } from "../tree";
import type { Step } from "../types";

/** Gives steps from elsewhere ids that are free here, and rewrites the references among them. */
export function adopt(steps: readonly Step[], taken: ReadonlySet<string>): readonly Step[] {
	const used = new Set(taken);
	const names = new Map<string, string>();
	for (const { step } of walk(steps)) {
		const id = freshId(step.id, used);
		used.add(id);
		if (id !== step.id) names.set(step.id, id);
	}
	return names.size === 0 ? steps : steps.map((step) => renameIn(step, names));
}
