import { group, resolve, write } from "../level";
import { find, listOf } from "../tree";
import type { Doc, Step } from "../types";

/** Steps as they are stored on the clipboard. */
export interface Clip {
	readonly steps: readonly Step[];
}

/**
 * Copies steps with the connections among them. Triggers are skipped, and steps inside a
 * copied block are not repeated.
 */
export function copy(doc: Pick<Doc, "steps">, ids: readonly string[]): Clip {
	const chosen = new Set(ids);
	const blocks = new Set<string | null>();
	for (const id of ids) {
		const spot = find(doc.steps, id);
		if (spot && !spot.path.some((block) => chosen.has(block))) blocks.add(spot.block);
	}
	const entries = [...blocks].flatMap((block) => group(resolve(listOf(doc.steps, block) ?? []), chosen));
	return { steps: write(entries) };
}
