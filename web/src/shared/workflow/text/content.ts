import { definedKeys, isObject } from "../model/json";
import { pointer } from "../model/pointer";
import type { Doc, Json, JsonObject, Layout, Settings, Step, Trigger } from "../model/types";
import { locate } from "./locate";
import { document } from "./print";
import { type Parsed, readYaml, type TextError } from "./yaml";

/** The content of a workflow's text. */
export interface Content {
	readonly name?: string;
	readonly description?: string | null;
	readonly triggers: readonly Trigger[];
	readonly steps: readonly Step[];
	readonly settings: Settings;
	/** Only if the text contains it, because positions are stored separately. */
	readonly layout?: Layout;
}

export type Read = { readonly content: Content; readonly parsed: Parsed } | { readonly errors: readonly TextError[] };

const known = ["name", "description", "triggers", "steps", "settings", "layout"];

/** Parses the text of a workflow. It does not check what only the server can. */
export function parse(source: string): Read {
	const parsed = readYaml(source);
	if ("error" in parsed) return { errors: [parsed.error] };
	const mistakes = mistakesOf(parsed.value);
	if (mistakes.length > 0) {
		return { errors: mistakes.map(({ at, message }) => ({ message, pointer: at, ...locate(parsed, at) })) };
	}
	const value = parsed.value as JsonObject;
	const content = {
		...value,
		triggers: value.triggers ?? [],
		steps: value.steps ?? [],
		settings: value.settings ?? {},
	} as unknown as Content;
	return { content, parsed };
}

/** Formats a workflow without existing text. Positions are omitted, because they are stored separately. */
export function print(content: Content): string {
	const { triggers, settings, layout: _, ...rest } = content;
	const value: Record<string, unknown> = { ...rest };
	if (triggers.length > 0) value.triggers = triggers;
	if (definedKeys(settings).length > 0) value.settings = settings;
	return document(value as JsonObject, "workflow");
}

/** The content of a document, with the name of its workflow. */
export function contentOf(doc: Doc, about: { name?: string; description?: string | null } = {}): Content {
	const { triggers, steps, settings, layout } = doc;
	return { ...about, triggers, steps, settings, layout };
}

interface Mistake {
	readonly at: string;
	readonly message: string;
}

/** Errors that prevent the builder from showing a value as a workflow. */
function mistakesOf(value: Json): Mistake[] {
	if (!isObject(value)) return [{ at: "", message: "a workflow is an object with steps" }];
	const out: Mistake[] = [];
	for (const key of Object.keys(value)) {
		if (!known.includes(key)) out.push({ at: pointer(key), message: `a workflow has no ${key}` });
	}
	const { triggers = [], steps = [], settings = {}, layout = {} } = value;
	out.push(...entries("/triggers", triggers, new Set(), () => []));
	out.push(...entries("/steps", steps, new Set(), stepMistakes));
	if (!isObject(settings)) out.push({ at: "/settings", message: "must be an object" });
	if (!isObject(layout)) out.push({ at: "/layout", message: "must be an object" });
	return out;
}

type Inner = (at: string, entry: JsonObject, ids: Set<string>) => Mistake[];

function entries(at: string, list: Json, ids: Set<string>, inner: Inner): Mistake[] {
	if (!Array.isArray(list)) return [{ at, message: "must be a list" }];
	return list.flatMap((entry: Json, i) => {
		const here = `${at}/${i}`;
		if (!isObject(entry)) return [{ at: here, message: "must be an object" }];
		const { id } = entry;
		if (typeof id !== "string" || id === "") return [{ at: `${here}/id`, message: "is required" }];
		const taken = ids.has(id);
		ids.add(id);
		const own = taken ? [{ at: `${here}/id`, message: `the id "${id}" is used by another one too` }] : [];
		return [...own, ...inner(here, entry, ids)];
	});
}

function stepMistakes(at: string, step: JsonObject, ids: Set<string>): Mistake[] {
	const { needs, with: input, foreach, repeat, steps } = step;
	const out: Mistake[] = [];
	if (needs !== undefined && !(Array.isArray(needs) && needs.every((need) => typeof need === "string"))) {
		out.push({ at: `${at}/needs`, message: "must be a list of ids" });
	}
	if (input !== undefined && !isObject(input)) out.push({ at: `${at}/with`, message: "must be an object" });
	if (foreach !== undefined && typeof foreach !== "string") out.push({ at: `${at}/foreach`, message: "must be text" });
	if (repeat !== undefined && !(isObject(repeat) && typeof repeat.until === "string")) {
		out.push({ at: `${at}/repeat`, message: "must be an object with until" });
	}
	return steps === undefined ? out : [...out, ...entries(`${at}/steps`, steps, ids, stepMistakes)];
}
