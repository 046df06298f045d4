import { equal, omit } from "./json";
import { pathOf, stepOf } from "./need";
import type { Step } from "./types";

/**
 * A step of a list with explicit needs. All graph edits work on entries, so that inserting
 * a step does not implicitly change what others need.
 */
export interface Entry {
	readonly step: Step;
	readonly needs: readonly string[];
}

export function resolve(steps: readonly Step[]): Entry[] {
	return steps.map((step, i) => ({ step, needs: step.needs ?? previous(steps[i - 1]) }));
}

function previous(step: Step | undefined): readonly string[] {
	return step ? [step.id] : [];
}

/**
 * Converts entries to steps. Needs are written only where they differ from "after the
 * previous step"; existing needs that still hold are kept.
 */
export function write(entries: readonly Entry[]): readonly Step[] {
	return entries.map(({ step, needs }, i) => {
		const unwritten = previous(entries[i - 1]?.step);
		if (equal(step.needs ?? unwritten, needs)) return step;
		return equal(unwritten, needs) ? omit(step, "needs") : { ...step, needs };
	});
}

export function indexOf(entries: readonly Entry[], id: string): number {
	return entries.findIndex((entry) => entry.step.id === id);
}

/** Replaces a need with others. That on a path out of a step is another need than that on the step. */
export function replaceNeed(entries: readonly Entry[], need: string, by: readonly string[]): Entry[] {
	return entries.map((entry) => (entry.needs.includes(need) ? substitute(entry, need, by) : entry));
}

/** Replaces a need of an entry with others, in place and without duplicates. */
export function substitute(entry: Entry, replaced: string, by: readonly string[]): Entry {
	const needs = entry.needs.flatMap((need) => (need === replaced ? by : [need]));
	return { step: entry.step, needs: [...new Set(needs)] };
}

/** Removes steps and connects their followers to their predecessors. */
export function detach(entries: readonly Entry[], ids: ReadonlySet<string>): Entry[] {
	let rest = [...entries];
	for (const id of ids) {
		const gone = rest.find((entry) => entry.step.id === id);
		if (!gone) continue;
		const needs = gone.needs.filter((need) => need !== id);
		rest = replaceNeed(
			rest.filter((entry) => entry !== gone),
			id,
			needs,
		);
	}
	return rest;
}

/** Extracts some steps of a list, dropping needs outside of the group. */
export function group(entries: readonly Entry[], ids: ReadonlySet<string>): Entry[] {
	return entries
		.filter((entry) => ids.has(entry.step.id))
		.map((entry) => ({ step: entry.step, needs: entry.needs.filter((need) => ids.has(stepOf(need))) }));
}

/**
 * The first step outside of a group that is on a path out of it. Without the group it would have
 * no condition left, so the group cannot be taken away from it.
 */
export function onPathOutOf(entries: readonly Entry[], ids: ReadonlySet<string>): Step | undefined {
	return entries.find(
		(entry) =>
			!ids.has(entry.step.id) && entry.needs.some((need) => pathOf(need) !== undefined && ids.has(stepOf(need))),
	)?.step;
}

export function roots(entries: readonly Entry[]): string[] {
	return entries.filter((entry) => entry.needs.length === 0).map((entry) => entry.step.id);
}

export function leaves(entries: readonly Entry[]): string[] {
	const needed = new Set(entries.flatMap((entry) => entry.needs.map(stepOf)));
	return entries.map((entry) => entry.step.id).filter((id) => !needed.has(id));
}

/** All direct and indirect predecessors of a step. */
export function upstream(entries: readonly Entry[], id: string): Set<string> {
	const needs = new Map(entries.map((entry) => [entry.step.id, entry.needs.map(stepOf)]));
	const seen = new Set<string>();
	const queue = [...(needs.get(id) ?? [])];
	for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
		if (seen.has(next) || !needs.has(next)) continue;
		seen.add(next);
		queue.push(...(needs.get(next) ?? []));
	}
	return seen;
}
