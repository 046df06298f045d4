import { omit } from "../json";
import { detach, onPathOutOf, resolve, write } from "../level";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, rejectEdit, type Step, title, triggerNode } from "../types";

/** Removes steps, and triggers by `@id`. The followers of each step are connected to its predecessors. */
export function remove(doc: Doc, nodes: readonly string[]): Edit {
	const ids = new Set(nodes);
	const triggers = doc.triggers.filter((trigger) => !ids.has(triggerNode(trigger.id)));
	let steps = doc.steps;
	const blocks = new Set<string | null>();
	const gone: string[] = nodes.filter((node) => node.startsWith("@"));
	for (const id of ids) {
		const spot = find(doc.steps, id);
		if (!spot) continue;
		gone.push(...idsOf([spot.step]));
		if (!spot.path.some((block) => ids.has(block))) blocks.add(spot.block);
	}
	for (const block of blocks) {
		const entries = resolve(listOf(steps, block) ?? []);
		const left = onPathOutOf(entries, ids);
		if (left) return rejectEdit(doc, whyLeft(left));
		steps = withList(steps, block, write(detach(entries, ids)));
	}
	if (triggers.length === doc.triggers.length && blocks.size === 0)
		return rejectEdit(doc, "There is nothing to delete.");
	const layout = omit(doc.layout, ...gone);
	const kept = triggers.length === doc.triggers.length ? doc.triggers : triggers;
	return {
		doc: { ...doc, triggers: kept, steps, layout, pinned: omit(doc.pinned, ...gone) },
		select: neighbour(doc.steps, steps, nodes),
	};
}

/** Why steps cannot be taken away from one that is on a path out of them. */
export function whyLeft(step: Step): string {
	return `“${title(step)}” is on a path from here and would always run. Select it too, or connect it to another step first.`;
}

/** What to select after removing steps: the predecessor of the last one, or the step after it. */
function neighbour(before: readonly Step[], after: readonly Step[], nodes: readonly string[]): string[] {
	const spot = nodes.map((node) => find(before, node)).find((found) => found !== undefined);
	if (!spot) return [];
	const list = listOf(after, spot.block);
	if (!list) return spot.block === null ? [] : neighbour(before, after, [spot.block]);
	const next = list[Math.max(0, spot.index - 1)];
	if (next) return [next.id];
	return spot.block === null ? [] : [spot.block];
}
