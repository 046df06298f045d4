import { idFrom } from "../id";
import { resolve } from "../level";
import { type Place, put } from "../place";
import { idsOf } from "../tree";
import { type Doc, type Edit, rejectEdit, type Step } from "../types";
import { adopt } from "./adopt";

/** A step to add; its id is derived from its name unless given. */
export type NewStep = Omit<Step, "id" | "needs"> & { readonly id?: string };

/** Adds a step at a place in the graph. */
export function addStep(doc: Doc, step: NewStep, place: Place): Edit {
	const added = adopt([named(step)], new Set(idsOf(doc.steps)));
	const steps = put(doc.steps, resolve(added), place);
	if (!steps) return rejectEdit(doc, "The place for the step no longer exists.");
	return { doc: { ...doc, steps }, select: added.map((own) => own.id) };
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
