import { idFrom } from "../id";
import { resolve, write } from "../level";
import { type Place, put } from "../place";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, type NewStep, rejectEdit, type Step } from "../types";
import { adopt } from "./adopt";
import { ontoFirstPath } from "./switch";

/** Adds a step at a place in the graph. */
export function addStep(doc: Doc, step: NewStep, place: Place): Edit {
	const added = adopt([named(step)], new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve(added), place);
	const [own] = added;
	if (!steps || !own) return rejectEdit(doc, "The place for the step no longer exists.");
	const block = find(steps, own.id)?.block ?? null;
	const list = write(ontoFirstPath(resolve(listOf(steps, block) ?? []), own));
	return { doc: { ...doc, steps: withList(steps, block, list) }, select: [own.id] };
}

/** The step with an id, which may already be taken. */
export function named(step: NewStep): Step {
	const { id, ...rest } = step;
	return { id: id ?? idFrom(step.name ?? lastWord(step.uses) ?? kind(step)), ...rest };
}

/** The last part of an action's name: "request" for http.request. */
function lastWord(uses: string | undefined): string | undefined {
	return uses?.split(".").at(-1);
}

function kind(step: NewStep): string {
	if (step.foreach !== undefined) return "each";
	return step.repeat ? "repeat" : "step";
}
