import type { Clip } from "../model/edit/copy";
import { isObject } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { parse } from "./content";
import { document, item } from "./print";
import { readYaml } from "./yaml";

/** Formats copied steps as YAML, so that they can also be pasted into text. */
export function clipText(clip: Clip): string {
	return document({ steps: clip.steps as unknown as Json }, "workflow");
}

/** Reads steps from text: a workflow, a list of steps or a single step; undefined otherwise. */
export function readClip(text: string): Clip | undefined {
	const read = readYaml(text);
	if ("error" in read) return undefined;
	const steps = stepsIn(read.value);
	if (!steps || steps.length === 0) return undefined;
	const checked = parse(`steps:\n${steps.map((step) => `  ${item(step, 2, "step")}`).join("")}`);
	return "content" in checked ? { steps: checked.content.steps } : undefined;
}

function stepsIn(value: Json): readonly Json[] | undefined {
	if (Array.isArray(value)) return value;
	if (!isObject(value)) return undefined;
	if (Array.isArray(value.steps) && value.id === undefined) return value.steps;
	return isStep(value) ? [value] : undefined;
}

function isStep(value: JsonObject): boolean {
	return typeof value.id === "string" && (typeof value.uses === "string" || Array.isArray(value.steps));
}
