import { isObject } from "./json";
import type { Step } from "./types";

// An entry of `needs` is the id of a step, or names a path out of it: size.big.

/** The path out of a step that is taken when the step has failed. */
export const errorPath = "error";

/** The step that a need refers to. */
export function stepOf(need: string): string {
	const dot = need.indexOf(".");
	return dot < 0 ? need : need.slice(0, dot);
}

/** The path that a need refers to; undefined for the step as a whole. */
export function pathOf(need: string): string | undefined {
	const dot = need.indexOf(".");
	return dot < 0 ? undefined : need.slice(dot + 1);
}

export function needOn(step: string, path: string | undefined): string {
	return path === undefined ? step : `${step}.${path}`;
}

export const switchAction = "flow.switch";

/** A path of a switch. */
export interface SwitchPath {
	readonly id: string;
	readonly name: string;
	/** Absent for the path that is taken if no condition is true. */
	readonly when?: string;
}

/** The name of the path that is taken if no condition is true. */
const elseName = "Otherwise";

/** The paths of a switch in order, as far as its input can be read; none for any other step. */
export function pathsOf(step: Step): readonly SwitchPath[] {
	if (step.uses !== switchAction || !isObject(step.with)) return [];
	const { paths, else: rest } = step.with;
	const own = (Array.isArray(paths) ? paths : []).flatMap((path) => {
		if (!isObject(path) || typeof path.id !== "string") return [];
		const name = typeof path.name === "string" && path.name ? path.name : path.id;
		return [{ id: path.id, name, when: String(path.when ?? "") }];
	});
	return typeof rest === "string" ? [...own, { id: rest, name: elseName }] : own;
}

/** The name of a path out of a step, as people see it. */
export function pathName(step: Step | undefined, path: string): string {
	if (path === errorPath) return "on error";
	return (step && pathsOf(step).find(({ id }) => id === path)?.name) ?? path;
}
