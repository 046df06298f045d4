import { expressionOf, noneOf } from "../../expression/combine";
import { type Place, put } from "../place";
import { idsOf } from "../tree";
import { type Doc, type Edit, rejectEdit, type Step } from "../types";
import { type NewStep, named } from "./add";
import { adopt } from "./adopt";

export interface Path {
	/** An expression, with or without ${{ }}. */
	readonly condition: string;
	readonly step: NewStep;
}

/** Splits into paths, each with a condition on its first step. `otherwise`, if given, runs when no other path does. */
export function split(doc: Doc, paths: readonly Path[], otherwise: NewStep | null, place: Place): Edit {
	if (paths.length === 0) return rejectEdit(doc, "A split needs at least one condition.");
	const conditions = paths.map((path) => expressionOf(path.condition));
	const firsts: Step[] = paths.map((path, i) => ({ ...named(path.step), if: conditions[i] as string }));
	if (otherwise) firsts.push({ ...named(otherwise), if: noneOf(conditions) });
	const added = distinct(firsts, new Set(idsOf(doc.steps)));
	const entries = added.map((step) => ({ step, needs: [] }));
	const steps = put(doc.steps, entries, place);
	if (!steps) return rejectEdit(doc, "The place for the paths no longer exists.");
	return { doc: { ...doc, steps }, select: added.map((step) => step.id) };
}

/** Paths that start with the same action get distinct ids. */
function distinct(steps: readonly Step[], taken: ReadonlySet<string>): Step[] {
	const used = new Set(taken);
	return steps.flatMap((step) => {
		const own = adopt([step], used);
		for (const id of idsOf(own)) used.add(id);
		return own;
	});
}
