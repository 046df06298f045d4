import { allOf, expressionOf } from "../../expression/combine";
import { omit } from "../json";
import { detach, type Entry, indexOf, leaves, onPathOutOf, replaceNeed, resolve, write } from "../level";
import { find, listOf, withList } from "../tree";
import { type Doc, type Edit, isBlock, rejectEdit, type Step } from "../types";
import { whyLeft } from "./remove";

/** Replaces a block with its steps. The block's condition is added to its first steps. */
export function unwrap(doc: Doc, id: string): Edit {
	const spot = find(doc.steps, id);
	if (!spot || !isBlock(spot.step)) return rejectEdit(doc, "The step is not a block.");
	const entries = resolve(listOf(doc.steps, spot.block) ?? []);
	const left = onPathOutOf(entries, new Set([id]));
	if (left) return rejectEdit(doc, whyLeft(left));
	const body = resolve(spot.step.steps ?? []);
	const list = body.length === 0 ? detach(entries, new Set([id])) : spread(entries, id, body);
	return {
		doc: {
			...doc,
			steps: withList(doc.steps, spot.block, write(list)),
			layout: omit(doc.layout, id),
			pinned: omit(doc.pinned, id),
		},
		select: body.map((entry) => entry.step.id),
	};
}

function spread(entries: readonly Entry[], id: string, body: readonly Entry[]): Entry[] {
	const at = indexOf(entries, id);
	const block = entries[at] as Entry;
	const freed = body.map((entry) =>
		entry.needs.length > 0 ? entry : { step: guarded(entry.step, block.step.if), needs: block.needs },
	);
	const rest = replaceNeed(entries, id, leaves(body));
	return [...rest.slice(0, at), ...freed, ...rest.slice(at + 1)];
}

/** Adds a condition to a step. */
function guarded(step: Step, condition: Step["if"]): Step {
	if (condition === undefined) return step;
	if (step.if === undefined) return { ...step, if: condition };
	return { ...step, if: allOf([expressionOf(condition), expressionOf(step.if)]) };
}
