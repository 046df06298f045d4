import { freshId, idFrom } from "../id";
import { resolve } from "../level";
import { type Place, put } from "../place";
import { idsOf, mapSteps } from "../tree";
import { type Doc, type Edit, refuse, type Step } from "../types";

/** A step to be added; its id is made from its name unless it is given. */
export type NewStep = Omit<Step, "id" | "needs"> & { readonly id?: string };

/** Adds a step at a place of the graph. */
export function addStep(doc: Doc, step: NewStep, place: Place): Edit {
	const added = named(step, new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve([added]), place);
	if (!steps) return refuse(doc, "The place where the step should go is gone.");
	return { doc: { ...doc, steps }, select: [added.id] };
}

/** The step with an id that is not taken, also for the steps inside it. */
export function named(step: NewStep, taken: Set<string>): Step {
	const id = freshId(step.id ?? idFrom(step.name ?? lastWord(step.uses) ?? kind(step)), taken);
	taken.add(id);
	const { id: _, ...rest } = step;
	const inner = step.steps && mapSteps(step.steps, (child) => named(child, taken));
	return inner ? { id, ...rest, steps: inner } : { id, ...rest };
}

/** What an action is called among those of its service: request of http.request. */
function lastWord(uses: string | undefined): string | undefined {
	return uses?.split(".").at(-1);
}

function kind(step: NewStep): string {
	if (step.foreach !== undefined) return "each";
	return step.repeat ? "repeat" : "step";
}
