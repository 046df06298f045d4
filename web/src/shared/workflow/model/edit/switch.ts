import { expressionOf } from "../../expression/combine";
import { freshId, idFrom } from "../id";
import { isObject, omit } from "../json";
import { type Entry, indexOf, replaceNeed, resolve, write } from "../level";
import { errorPath, needOn, pathOf, pathsOf, stepOf, switchAction } from "../need";
import { negatedBy } from "../otherwise";
import { find, idsOf, listOf, withList } from "../tree";
import { type Doc, type Edit, type Json, type JsonObject, type NewStep, rejectEdit, type Step, title } from "../types";

/** A switch as it is added: one path without a condition yet, and one for everything else. */
export const newSwitch: NewStep = {
	id: "branch",
	name: "Branch",
	uses: switchAction,
	with: { paths: [{ id: "path_1", name: "Path 1", when: "" }], else: "otherwise" },
};

/** What comes after a switch that is inserted is on its first path. */
export function ontoFirstPath(list: readonly Entry[], step: Step): readonly Entry[] {
	const [first] = pathsOf(step);
	return first ? replaceNeed(list, step.id, [needOn(step.id, first.id)]) : list;
}

/** Adds a path with a condition, before the one for everything else. */
export function addPath(doc: Doc, id: string): Edit {
	return withPaths(doc, id, (step, paths) => {
		const taken = new Set([...pathsOf(step).map((path) => path.id), errorPath]);
		const name = `Path ${paths.length + 1}`;
		return [...paths, { id: freshId(idFrom(name), taken), name, when: "" }];
	});
}

/** Removes a path that no step is on. */
export function removePath(doc: Doc, id: string, path: string): Edit {
	const user = userOf(doc, id, path);
	if (user) {
		return rejectEdit(doc, `“${title(user)}” is on this path. Delete it, or connect it to another step first.`);
	}
	return withPaths(doc, id, (_, paths) => paths.filter((one) => !isObject(one) || one.id !== path));
}

/** Changes the place of a path among those with a condition. */
export function movePath(doc: Doc, id: string, path: string, by: -1 | 1): Edit {
	return withPaths(doc, id, (_, paths) => {
		const at = paths.findIndex((one) => isObject(one) && one.id === path);
		const other = at + by;
		const out = [...paths];
		if (at < 0 || other < 0 || other >= paths.length) return out;
		[out[at], out[other]] = [out[other] as Json, out[at] as Json];
		return out;
	});
}

/** Renames a path. Its id follows its name until somebody has chosen another one. */
export function namePath(doc: Doc, id: string, path: string, name: string): Edit {
	const step = find(doc.steps, id)?.step;
	const known = step && pathsOf(step).find((one) => one.id === path);
	if (!step || !known) return rejectEdit(doc, "The path no longer exists.");
	const named = withPaths(doc, id, (_, paths) =>
		paths.map((one) => {
			if (!isObject(one) || one.id !== path) return one;
			return name === "" ? omit(one, "name") : { ...one, name };
		}),
	);
	const follows = /^path_\d+$/.test(path) || path === idFrom(known.name);
	if (!follows || name === "") return named;
	const taken = new Set([...pathsOf(step).map((one) => one.id), errorPath]);
	taken.delete(path);
	return renamePath(named.doc, id, path, freshId(idFrom(name), taken));
}

/** Changes the id of a path, also in the needs of the steps on it. */
export function renamePath(doc: Doc, id: string, from: string, to: string): Edit {
	if (from === to) return { doc, select: [id] };
	const spot = find(doc.steps, id);
	if (!spot) return rejectEdit(doc, "The step no longer exists.");
	const list = listOf(doc.steps, spot.block) ?? [];
	const old = needOn(id, from);
	const renamed = list.map((step) => {
		if (step.id === id) return { ...step, with: withPathId(step.with ?? {}, from, to) };
		if (!step.needs?.includes(old)) return step;
		return { ...step, needs: step.needs.map((need) => (need === old ? needOn(id, to) : need)) };
	});
	return { doc: { ...doc, steps: withList(doc.steps, spot.block, renamed) }, select: [id] };
}

/** Adds or removes the path that is taken if no condition is true. */
export function setElse(doc: Doc, id: string, has: boolean): Edit {
	const spot = find(doc.steps, id);
	if (spot?.step.uses !== switchAction) return rejectEdit(doc, "The step is not a branch.");
	const input = spot.step.with ?? {};
	if (has === (typeof input.else === "string")) return { doc, select: [id] };
	if (has) {
		const taken = new Set(pathsOf(spot.step).map((path) => path.id));
		return withInput(doc, id, { ...input, else: freshId("otherwise", taken) });
	}
	const user = userOf(doc, id, String(input.else));
	if (user) {
		return rejectEdit(doc, `“${title(user)}” is on this path. Delete it, or connect it to another step first.`);
	}
	return withInput(doc, id, omit(input, "else"));
}

/** The first step on a path. */
function userOf(doc: Doc, id: string, path: string): Step | undefined {
	const block = find(doc.steps, id)?.block ?? null;
	return (listOf(doc.steps, block) ?? []).find((step) => step.needs?.includes(needOn(id, path)));
}

function withPaths(doc: Doc, id: string, change: (step: Step, paths: readonly Json[]) => readonly Json[]): Edit {
	const step = find(doc.steps, id)?.step;
	if (step?.uses !== switchAction) return rejectEdit(doc, "The step is not a branch.");
	const input = step.with ?? {};
	return withInput(doc, id, { ...input, paths: change(step, Array.isArray(input.paths) ? input.paths : []) });
}

function withInput(doc: Doc, id: string, input: JsonObject): Edit {
	const block = find(doc.steps, id)?.block ?? null;
	const list = (listOf(doc.steps, block) ?? []).map((step) => (step.id === id ? { ...step, with: input } : step));
	return { doc: { ...doc, steps: withList(doc.steps, block, list) }, select: [id] };
}

function withPathId(input: JsonObject, from: string, to: string): JsonObject {
	const paths = (Array.isArray(input.paths) ? input.paths : []).map((path: Json) =>
		isObject(path) && path.id === from ? { ...path, id: to } : path,
	);
	return { ...input, paths, ...(input.else === from && { else: to }) };
}

/** The steps that `toSwitch` would turn into paths: this one, whose condition negates those of the others. */
export function convertible(doc: Pick<Doc, "steps">, id: string): readonly string[] {
	const spot = find(doc.steps, id);
	const owners = [...new Set(negatedBy(doc, id).map(({ owner }) => owner))];
	if (!spot || owners.length === 0) return [];
	const entries = resolve(listOf(doc.steps, spot.block) ?? []);
	const needs = [...(entries[spot.index]?.needs ?? [])].sort().join(" ");
	const beside = owners.every((owner) => {
		const entry = entries[indexOf(entries, owner)];
		return entry?.step.if !== undefined && [...entry.needs].sort().join(" ") === needs;
	});
	return beside ? [...owners, id] : [];
}

/** Replaces a step's condition and those that it negates by a switch before these steps. */
export function toSwitch(doc: Doc, id: string): Edit {
	const ids = convertible(doc, id);
	const block = find(doc.steps, id)?.block ?? null;
	const entries = resolve(listOf(doc.steps, block) ?? []);
	const first = Math.min(...ids.map((one) => indexOf(entries, one)));
	if (ids.length === 0 || !entries[first]) return rejectEdit(doc, "Its condition is not the opposite of another one.");
	const own = freshId("branch", new Set(idsOf(doc.steps)));
	const owners = ids.slice(0, -1);
	const pathFor = (step: string) => (step === errorPath ? `${step}_path` : step);
	const paths = owners.map((owner) => {
		const step = entries[indexOf(entries, owner)]?.step as Step;
		return { id: pathFor(owner), name: title(step), when: expressionOf(step.if ?? true) };
	});
	const added: Step = { ...newSwitch, id: own, with: { paths, else: pathFor(id) } };
	const onPaths = entries.map((entry) =>
		ids.includes(entry.step.id)
			? { step: omit(entry.step, "if"), needs: [needOn(own, pathFor(entry.step.id))] }
			: entry,
	);
	const list = [...onPaths.slice(0, first), { step: added, needs: entries[first].needs }, ...onPaths.slice(first)];
	return { doc: { ...doc, steps: withList(doc.steps, block, write(list)) }, select: [own] };
}

/** The need for adding a step after another one: of a switch, its first path without steps. */
export function freeNeed(doc: Pick<Doc, "steps">, id: string): string {
	const spot = find(doc.steps, id);
	if (!spot) return id;
	const used = new Set(resolve(listOf(doc.steps, spot.block) ?? []).flatMap((entry) => entry.needs));
	const free = pathsOf(spot.step).find((path) => !used.has(needOn(id, path.id)));
	return free ? needOn(id, free.id) : id;
}

/** The paths of a switch that no step is on. */
export function freePaths(list: readonly Step[], step: Step): readonly string[] {
	const used = new Set(
		list
			.flatMap((other) => other.needs ?? [])
			.filter((need) => stepOf(need) === step.id)
			.map(pathOf),
	);
	return pathsOf(step).flatMap((path) => (used.has(path.id) ? [] : [path.id]));
}
