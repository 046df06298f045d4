import { idFrom } from "../id";
import { resolve } from "../level";
import { type Place, put } from "../place";
import { idsOf } from "../tree";
import { type Doc, type Edit, refuse, type Step } from "../types";
import { adopt } from "./adopt";

/** A step to be added; its id is made from its name unless it is given. */
export type NewStep = Omit<Step, "id" | "needs"> & { readonly id?: string };

/** Adds a step at a place of the graph. */
export function addStep(doc: Doc, step: NewStep, place: Place): Edit {
	const added = adopt([named(step)], new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve(added), place);
	if (!steps) return refuse(doc, "The place where the step should go is gone.");
	return { doc: { ...doc, steps }, select: added.map((own) => own.id) };
}

/** The step with an id, which may be taken. */
export function named(step: NewStep): Step {
	const { id, ...rest } = step;
	return { id: id ?? idFrom(step.name ?? lastWord(step.uses) ?? kind(step)), ...rest };
}

/** What an action is called among those of its service: request of http.request. */
function lastWord(uses: string | undefined): string | undefined {
	return uses?.split(".").at(-1);
}

function kind(step: NewStep): string {
	if (step.foreach !== undefined) return "each";
	return step.repeat ? "repeat" : "step";
}
