import { expressionOf, noneOf } from "../expression/combine";
import { resolve } from "./level";
import { find, idsOf, listOf } from "./tree";
import type { Doc, Step } from "./types";

// Before there were switches, the condition of a last path was written as the negation of the
// others. Such steps are found here, so that the builder can offer to turn them into a switch.

/** A negated condition and the step it belongs to. */
export interface Negated {
	readonly condition: string;
	readonly owner: string;
}

/** The condition of a step without one. */
const always = "true";

function conditionOf(step: Step): string {
	return step.if === undefined ? always : expressionOf(step.if);
}

/** The conditions that a step's condition negates; empty if it is not the negation of its siblings' conditions. */
export function negatedBy(doc: Pick<Doc, "steps">, id: string): readonly Negated[] {
	const spot = find(doc.steps, id);
	if (!spot || typeof spot.step.if !== "string") return [];
	const owners = ownersFor(listOf(doc.steps, spot.block) ?? [], spot.index);
	const conditions = taken(spot.step.if, [...owners.keys()]) ?? [];
	const order = idsOf(doc.steps);
	const left = new Map<string, string[]>();
	for (const condition of conditions) {
		const count = conditions.filter((other) => other === condition).length;
		const own = (owners.get(condition) ?? []).slice(0, count);
		left.set(
			condition,
			own.sort((a, b) => order.indexOf(a) - order.indexOf(b)),
		);
	}
	return conditions.map((condition) => {
		const own = left.get(condition) as string[];
		return { condition, owner: (own.length > 1 ? own.shift() : own[0]) as string };
	});
}

/**
 * Maps each sibling condition to the steps that have it, most likely first: those with the
 * same predecessors, then the nearest preceding ones. A step without a condition counts
 * only if it has the same predecessors.
 */
function ownersFor(list: readonly Step[], index: number): Map<string, string[]> {
	const entries = resolve(list);
	const own = needsKey(entries[index]?.needs);
	const near = [...entries.slice(0, index).reverse(), ...entries.slice(index + 1)];
	const beside = near.filter((entry) => needsKey(entry.needs) === own);
	const others = near.filter((entry) => entry.step.if !== undefined);
	const owners = new Map<string, string[]>();
	for (const { step } of new Set([...beside, ...others])) {
		const condition = conditionOf(step);
		owners.set(condition, [...(owners.get(condition) ?? []), step.id]);
	}
	return owners;
}

function needsKey(needs: readonly string[] | undefined): string {
	return [...(needs ?? [])].sort().join(" ");
}

/** The conditions whose exact negation a text is; undefined if it is none. */
function taken(text: string, conditions: readonly string[]): string[] | undefined {
	const and = " && ";
	for (const condition of conditions) {
		const negation = noneOf([condition]);
		if (text === negation) return [condition];
		if (!text.startsWith(negation + and)) continue;
		const rest = taken(text.slice(negation.length + and.length), conditions);
		if (rest) return [condition, ...rest];
	}
	return undefined;
}
