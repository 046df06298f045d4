import { pointer } from "./pointer";
import type { Doc, Step } from "./types";

/** The position of a step. */
export interface Spot {
	readonly step: Step;
	/** The id of its block, null at the top level. */
	readonly block: string | null;
	/** The ids of all enclosing blocks, outermost first. */
	readonly path: readonly string[];
	readonly index: number;
	readonly pointer: string;
}

/** Iterates over all steps, a block before its contents. */
export function* walk(
	steps: readonly Step[],
	path: readonly string[] = [],
	at = "/steps",
): Generator<Spot, void, undefined> {
	for (const [index, step] of steps.entries()) {
		const here = `${at}/${index}`;
		yield { step, block: path.at(-1) ?? null, path, index, pointer: here };
		if (step.steps) yield* walk(step.steps, [...path, step.id], `${here}/steps`);
	}
}

export function find(steps: readonly Step[], id: string): Spot | undefined {
	for (const spot of walk(steps)) {
		if (spot.step.id === id) return spot;
	}
	return undefined;
}

/** All steps, with those inside blocks. */
export function allSteps(steps: readonly Step[]): Step[] {
	return [...walk(steps)].map((spot) => spot.step);
}

export function idsOf(steps: readonly Step[]): string[] {
	return [...walk(steps)].map((spot) => spot.step.id);
}

/** The list of steps of a block, or of the top level. */
export function listOf(steps: readonly Step[], block: string | null): readonly Step[] | undefined {
	if (block === null) return steps;
	const spot = find(steps, block);
	return spot && (spot.step.steps ?? []);
}

/** Replaces the list of a block, or of the top level. */
export function withList(steps: readonly Step[], block: string | null, list: readonly Step[]): readonly Step[] {
	if (block === null) return list;
	return mapSteps(steps, (step) => (step.id === block ? { ...step, steps: list } : step));
}

/** Maps all steps, inner ones first. */
export function mapSteps(steps: readonly Step[], change: (step: Step) => Step): readonly Step[] {
	let same = true;
	const out = steps.map((step) => {
		const inner = step.steps && mapSteps(step.steps, change);
		const changed = change(inner === step.steps ? step : { ...step, steps: inner });
		same &&= changed === step;
		return changed;
	});
	return same ? steps : out;
}

/** The innermost step that contains a pointer. */
export function stepAt(steps: readonly Step[], at: string): Spot | undefined {
	let found: Spot | undefined;
	for (const spot of walk(steps)) {
		if (at === spot.pointer || at.startsWith(`${spot.pointer}/`)) found = spot;
	}
	return found;
}

/** The pointer of a node: a step by its id, a trigger by `@id`. */
export function nodePointer(doc: Pick<Doc, "steps" | "triggers">, node: string): string | undefined {
	if (!node.startsWith("@")) return find(doc.steps, node)?.pointer;
	const index = doc.triggers.findIndex((trigger) => trigger.id === node.slice(1));
	return index < 0 ? undefined : pointer("triggers", index);
}

/** The node that contains a pointer. */
export function nodeAt(doc: Pick<Doc, "steps" | "triggers">, at: string): string | undefined {
	const trigger = /^\/triggers\/(\d+)(?:\/|$)/.exec(at);
	if (trigger) {
		const found = doc.triggers[Number(trigger[1])];
		return found && `@${found.id}`;
	}
	return stepAt(doc.steps, at)?.step.id;
}
