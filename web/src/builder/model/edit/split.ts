import { expressionOf, noneOf } from "../../expression/combine";
import { type Place, put } from "../place";
import { idsOf } from "../tree";
import { type Doc, type Edit, refuse, type Step } from "../types";
import { type NewStep, named } from "./add";
import { adopt } from "./adopt";

export interface Path {
	/** An expression, with or without ${{ }}. */
	readonly condition: string;
	readonly step: NewStep;
}

/**
 * Splits the way into paths, each with a condition on its first step. The last
 * path, if it is given, is taken when none of the others is.
 */
export function split(doc: Doc, paths: readonly Path[], otherwise: NewStep | null, place: Place): Edit {
	if (paths.length === 0) return refuse(doc, "A split needs at least one condition.");
	const conditions = paths.map((path) => expressionOf(path.condition));
	const firsts: Step[] = paths.map((path, i) => ({ ...named(path.step), if: conditions[i] as string }));
	if (otherwise) firsts.push({ ...named(otherwise), if: noneOf(conditions) });
	const added = distinct(firsts, new Set(idsOf(doc.steps)));
	const entries = added.map((step) => ({ step, needs: [] }));
	const steps = put(doc.steps, entries, place);
	if (!steps) return refuse(doc, "The place where the paths should go is gone.");
	return { doc: { ...doc, steps }, select: added.map((step) => step.id) };
}

/** Two paths may begin with the same action: each gets an id of its own. */
function distinct(steps: readonly Step[], taken: ReadonlySet<string>): Step[] {
	const used = new Set(taken);
	return steps.flatMap((step) => {
		const own = adopt([step], used);
		for (const id of idsOf(own)) used.add(id);
		return own;
	});
}
