import { bareRefs, renameRefs, templateRefs } from "../expression/refs";
import { isObject, mapStrings } from "./json";
import { needOn, pathOf, stepOf, switchAction } from "./need";
import { pointer } from "./pointer";
import type { Json, JsonObject, Settings, Step, Trigger } from "./types";

// Finds the expressions in a definition.

/** How a field is parsed: as an expression, or as text that may contain expressions. */
export type Form = "bare" | "template";

type Change = (text: string, form: Form) => string;

/** A text of a step that is or may contain an expression. */
export interface ExpressionText {
	/** Relative to the step. */
	readonly at: string;
	readonly text: string;
	readonly form: Form;
}

/** The texts of a step that are or may contain expressions, excluding nested steps. */
export function stepTexts(step: Step): ExpressionText[] {
	const out: ExpressionText[] = [];
	if (typeof step.if === "string") out.push({ at: "/if", text: step.if, form: "bare" });
	if (step.foreach !== undefined) out.push({ at: "/foreach", text: step.foreach, form: "bare" });
	if (step.repeat) out.push({ at: "/repeat/until", text: step.repeat.until, form: "bare" });
	if (!step.with) return out;
	const input = textsIn(step.with, "/with");
	if (step.uses !== switchAction) return [...out, ...input];
	// In a switch, only conditions are expressions.
	return [...out, ...input.filter(({ at }) => condition.test(at)).map((text) => ({ ...text, form: "bare" as const }))];
}

/** Matches the pointers of the conditions of a switch. */
const condition = /^\/with\/paths\/\d+\/when$/;

function textsIn(value: Json, at: string): ExpressionText[] {
	if (typeof value === "string") return [{ at, text: value, form: "template" }];
	if (Array.isArray(value)) return value.flatMap((item: Json, i) => textsIn(item, `${at}/${i}`));
	if (!isObject(value)) return [];
	return Object.entries(value).flatMap(([key, member]) => textsIn(member, at + pointer(key)));
}

/** Maps all expressions of a step, excluding nested steps. */
export function mapStepExpressions(step: Step, change: Change): Step {
	const patch: { -readonly [K in keyof Step]?: Step[K] } = {};
	if (typeof step.if === "string") patch.if = change(step.if, "bare");
	if (step.foreach !== undefined) patch.foreach = change(step.foreach, "bare");
	if (step.repeat) patch.repeat = { ...step.repeat, until: change(step.repeat.until, "bare") };
	if (step.repeat && patch.repeat?.until === step.repeat.until) patch.repeat = step.repeat;
	if (step.with)
		patch.with = step.uses === switchAction ? mapConditions(step.with, change) : mapInput(step.with, change);
	const same = Object.entries(patch).every(([key, value]) => step[key as keyof Step] === value);
	return same ? step : { ...step, ...patch };
}

function mapInput(input: JsonObject, change: Change): JsonObject {
	return mapStrings(input, (text) => change(text, "template")) as JsonObject;
}

function mapConditions(input: JsonObject, change: Change): JsonObject {
	if (!Array.isArray(input.paths)) return input;
	const paths = input.paths.map((path: Json) => {
		if (!isObject(path) || typeof path.when !== "string") return path;
		const when = change(path.when, "bare");
		return when === path.when ? path : { ...path, when };
	});
	return paths.every((path, i) => path === (input.paths as readonly Json[])[i]) ? input : { ...input, paths };
}

/** The texts of a trigger that are or may contain expressions. */
export function triggerTexts(trigger: Trigger): ExpressionText[] {
	return Object.entries(triggerForms).flatMap(([member, form]) => {
		const value = trigger[member];
		return value === undefined ? [] : textsIn(value, pointer(member)).map((text) => ({ ...text, form }));
	});
}

const triggerForms: Readonly<Record<string, Form>> = {
	items: "bare",
	key: "bare",
	cursor: "bare",
	dedupe: "template",
	verify: "template",
	request: "template",
};

export function mapTriggerExpressions(trigger: Trigger, change: Change): Trigger {
	const patch: Record<string, Json> = {};
	for (const [member, form] of Object.entries(triggerForms)) {
		const value = trigger[member];
		if (value === undefined) continue;
		const changed = mapStrings(value, (text) => change(text, form));
		if (changed !== value) patch[member] = changed;
	}
	return Object.keys(patch).length ? { ...trigger, ...patch } : trigger;
}

export function mapSettingsExpressions(settings: Settings, change: Change): Settings {
	const key = settings.concurrency?.key;
	if (key === undefined) return settings;
	const changed = change(key, "template");
	return changed === key ? settings : { ...settings, concurrency: { ...settings.concurrency, key: changed } };
}

/** Returns a mapping that renames steps in expressions. */
export function renaming(names: ReadonlyMap<string, string>): Change {
	return (text, form) => renameRefs(text, form === "bare" ? bareRefs(text) : templateRefs(text), names);
}

/** Renames steps in a step and in everything inside it. */
export function renameIn(step: Step, names: ReadonlyMap<string, string>): Step {
	let out = mapStepExpressions(step, renaming(names));
	const id = names.get(step.id);
	if (id !== undefined) out = { ...out, id };
	if (step.needs?.some((need) => names.has(stepOf(need)))) {
		const needs = step.needs.map((need) => needOn(names.get(stepOf(need)) ?? stepOf(need), pathOf(need)));
		out = { ...out, needs };
	}
	if (!step.steps) return out;
	const inner = step.steps.map((child) => renameIn(child, names));
	return inner.every((child, i) => child === step.steps?.[i]) ? out : { ...out, steps: inner };
}
