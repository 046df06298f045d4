import { definedKeys, equal, isObject, omit } from "./json";
import { resolve } from "./level";
import { pointer } from "./pointer";
import { longestCommon } from "./sequence";
import type { Definition, Json, Settings, Step, Trigger } from "./types";

// The differences between two definitions, step by step, in the same form as the server's
// version diff. Used for unsaved changes.

export interface FieldDiff {
	readonly field: string;
	readonly from?: Json;
	readonly to?: Json;
}

export interface StepDiff {
	readonly change: "added" | "removed" | "changed" | "moved" | "renamed";
	readonly step_id: string;
	/** The path of its block, null at the top level or if it does not exist. */
	readonly from_block: string | null;
	readonly to_block: string | null;
	/** Without nested steps, and with explicit needs. */
	readonly from: Step | null;
	readonly to: Step | null;
	readonly fields: readonly FieldDiff[];
}

export interface TriggerDiff {
	readonly change: "added" | "removed" | "changed";
	readonly trigger_id: string;
	readonly from: Trigger | null;
	readonly to: Trigger | null;
	readonly fields: readonly FieldDiff[];
}

export interface Diff {
	readonly steps: readonly StepDiff[];
	readonly triggers: readonly TriggerDiff[];
	readonly settings: readonly FieldDiff[];
}

export function diff(from: Definition, to: Definition): Diff {
	return {
		steps: diffSteps(outline(from.steps), outline(to.steps)),
		triggers: diffTriggers(from.triggers, to.triggers),
		settings: diffFields(from.settings as Plain, to.settings as Plain),
	};
}

export function isSame(d: Diff): boolean {
	return d.steps.length + d.triggers.length + d.settings.length === 0;
}

interface Placed {
	readonly step: Step;
	readonly block: string;
	readonly path: string | null;
}

/** All steps individually, a block before its contents. */
function outline(steps: readonly Step[], block = "", path: string | null = null): Placed[] {
	return resolve(steps).flatMap(({ step, needs }) => {
		const own = { ...omit(step, "steps"), needs: [...needs].sort() };
		const inner = path === null ? step.id : `${path}.${step.id}`;
		return [{ step: own, block, path }, ...outline(step.steps ?? [], step.id, inner)];
	});
}

function diffSteps(from: readonly Placed[], to: readonly Placed[]): StepDiff[] {
	const names = matchSteps(from, to);
	const earlier = new Map(
		from.flatMap((was) => (names.has(was.step.id) ? [[names.get(was.step.id), was] as const] : [])),
	);
	const moved = movedSteps(from, to, names);
	const removed = new Map<string, StepDiff[]>();
	let last = "";
	for (const was of from) {
		const now = names.get(was.step.id);
		if (now !== undefined) last = now;
		else removed.set(last, [...(removed.get(last) ?? []), told("removed", was, null, [])]);
	}
	// A removed step is listed after its predecessor.
	const out: StepDiff[] = [...(removed.get("") ?? [])];
	for (const now of to) {
		const was = earlier.get(now.step.id);
		const fields = was ? diffFields(was.step as unknown as Plain, now.step as unknown as Plain) : [];
		const change = was ? changeOf(was, now, moved.has(now.step.id), fields.length > 0) : "added";
		if (change) out.push(told(change, was ?? null, now, fields));
		out.push(...(removed.get(now.step.id) ?? []));
	}
	return out;
}

function told(
	change: StepDiff["change"],
	was: Placed | null,
	now: Placed | null,
	fields: readonly FieldDiff[],
): StepDiff {
	return {
		change,
		step_id: (now ?? was)?.step.id ?? "",
		from_block: was?.path ?? null,
		to_block: now?.path ?? null,
		from: was?.step ?? null,
		to: now?.step ?? null,
		fields,
	};
}

function changeOf(was: Placed, now: Placed, moved: boolean, changed: boolean): StepDiff["change"] | undefined {
	if (was.step.id !== now.step.id) return "renamed";
	if (moved) return "moved";
	return changed ? "changed" : undefined;
}

/** Maps earlier ids to later ones. Steps with a new id are matched only if there is no ambiguity. */
function matchSteps(from: readonly Placed[], to: readonly Placed[]): Map<string, string> {
	const later = new Set(to.map((now) => now.step.id));
	const names = new Map(from.flatMap((was) => (later.has(was.step.id) ? [[was.step.id, was.step.id] as const] : [])));
	const taken = new Set(names.values());
	// Once a renamed block is matched, its steps can be matched in the next pass.
	for (let found = true; found; ) {
		found = false;
		const gone = from.filter((was) => !names.has(was.step.id) && (was.block === "" || names.has(was.block)));
		const come = to.filter((now) => !taken.has(now.step.id));
		for (const was of gone) {
			const block = was.block === "" ? "" : names.get(was.block);
			const like = (other: Placed) => equal(bare(other.step), bare(was.step));
			const here = come.filter((now) => now.block === block && like(now));
			const rivals = gone.filter((other) => other.block === was.block && like(other));
			const only = here[0];
			if (!only || here.length !== 1 || rivals.length !== 1) continue;
			names.set(was.step.id, only.step.id);
			taken.add(only.step.id);
			found = true;
		}
	}
	return names;
}

function bare(step: Step): Step {
	return omit(step, "id", "needs");
}

/** The later ids of steps that changed their block or their relative order. */
function movedSteps(from: readonly Placed[], to: readonly Placed[], names: ReadonlyMap<string, string>): Set<string> {
	const blockOf = new Map(to.map((now) => [now.step.id, now.block]));
	// A renamed step has the same name in both directions, so that both find the same steps.
	const pairs = new Map([...names].map(([was, now]) => [now, [was, now].sort().join(" ")]));
	const ids = new Map([...pairs].map(([now, pair]) => [pair, now]));
	const stays = (was: Placed) => {
		const now = names.get(was.step.id);
		return now !== undefined && blockOf.get(now) === (was.block === "" ? "" : names.get(was.block));
	};
	const out = new Set(names.values());
	const staying = from.filter(stays).map((was) => names.get(was.step.id) as string);
	for (const block of new Set(to.map((now) => now.block))) {
		const before = staying.filter((id) => blockOf.get(id) === block);
		const kept = new Set(before);
		const after = to.filter((now) => now.block === block && kept.has(now.step.id)).map((now) => now.step.id);
		const paired = (list: readonly string[]) => list.map((id) => pairs.get(id) as string);
		for (const pair of longestCommon(paired(before), paired(after))) out.delete(ids.get(pair) as string);
	}
	return out;
}

function diffTriggers(from: readonly Trigger[], to: readonly Trigger[]): TriggerDiff[] {
	const ids = [...new Set([...from, ...to].map((trigger) => trigger.id))].sort();
	return ids.flatMap((id): TriggerDiff[] => {
		const was = from.find((trigger) => trigger.id === id) ?? null;
		const now = to.find((trigger) => trigger.id === id) ?? null;
		if (!was || !now) return [{ change: was ? "removed" : "added", trigger_id: id, from: was, to: now, fields: [] }];
		const fields = diffFields(was as Plain, now as Plain);
		return fields.length ? [{ change: "changed", trigger_id: id, from: was, to: now, fields }] : [];
	});
}

type Plain = Readonly<Record<string, Json | undefined>> & Partial<Settings>;

/** The fields that differ. Lists are compared as a whole, because their items have no identity. */
export function diffFields(from: Plain, to: Plain, at = ""): FieldDiff[] {
	const names = [...new Set([...definedKeys(from), ...definedKeys(to)])].sort();
	return names.flatMap((name) => {
		const field = at + pointer(name);
		const [was, now] = [from[name], to[name]];
		if (isObject(was) && isObject(now)) return diffFields(was as Plain, now as Plain, field);
		if (equal(was, now)) return [];
		return [{ field, ...(was !== undefined && { from: was }), ...(now !== undefined && { to: now }) }];
	});
}
