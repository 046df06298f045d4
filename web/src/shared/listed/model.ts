import { spans } from "@/shared/workflow/expression/template";
import type { Json, JsonObject } from "@/shared/workflow/model";
import { isEmpty, type Listed, words } from "./field";
import type { Choice, JsonSchema } from "./schema";

/** The path of an input as the API names it: entries of lists have no part in it. */
export function inputPath(pointer: string, base: string): string {
	const parts = pointer.slice(base.length + 1).split("/");
	return parts.filter((part) => !/^\d+$/.test(part)).join("/");
}

/** The inputs that decide what is listed. */
export function dependencies(listed: Listed, input: JsonObject): JsonObject {
	return Object.fromEntries(
		listed.dependsOn.flatMap((name) => (isEmpty(input[name]) ? [] : [[name, input[name] as Json]])),
	);
}

/** Why nothing can be listed yet: another input comes first. */
export function blockedBy(listed: Listed, input: JsonObject, schema: JsonSchema): string | undefined {
	for (const name of listed.dependsOn) {
		const value = input[name];
		const member = schema.properties?.[name];
		const title = (typeof member === "object" ? member.title : undefined) ?? words(name);
		if (hasExpression(value)) return `${title} is an expression, so the list is known only when the step runs.`;
		if (listed.needs.includes(name) && isEmpty(value)) return `Choose “${title}” first.`;
	}
	return undefined;
}

function hasExpression(value: Json | undefined): boolean {
	if (typeof value === "string") return spans(value).length > 0;
	return typeof value === "object" && value !== null && Object.values(value).some(hasExpression);
}

/** The value of the text that somebody has typed: a number if it is one and the field takes numbers. */
export function typed(text: string, number: boolean): Json | undefined {
	if (text === "") return undefined;
	return number && /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;
}

/** The text of a value. */
export function textOf(value: Json | undefined): string {
	if (value === undefined || value === null) return "";
	return typeof value === "string" ? value : JSON.stringify(value);
}

export function choiceOf(choices: readonly Choice[], value: Json | undefined): Choice | undefined {
	return isEmpty(value) ? undefined : choices.find((choice) => String(choice.value) === textOf(value));
}

/** The choices whose label or value contains a text. */
export function matching(choices: readonly Choice[], text: string): readonly Choice[] {
	const wanted = text.trim().toLowerCase();
	if (wanted === "") return choices;
	return choices.filter(
		({ value, label }) => label.toLowerCase().includes(wanted) || String(value).toLowerCase().includes(wanted),
	);
}

/** The only choice with a label, which somebody has typed in full. */
export function named(choices: readonly Choice[], label: string): Choice | undefined {
	const wanted = label.trim().toLowerCase();
	const found = choices.filter((choice) => choice.label.toLowerCase() === wanted);
	return found.length === 1 && !choices.some(({ value }) => String(value) === label.trim()) ? found[0] : undefined;
}

/** A listed member of an object, as the API returns it. */
export interface Member {
	readonly name: string;
	readonly title: string;
	readonly type: string;
	readonly required: boolean;
	readonly options: readonly Choice[] | null;
}

/** The schema of an object with these members. What a member takes also depends on the value that it has. */
export function memberSchema(members: readonly Member[], value: JsonObject): JsonSchema {
	return {
		type: "object",
		required: members.filter(({ required }) => required).map(({ name }) => name),
		properties: Object.fromEntries(members.map((member) => [member.name, schemaOf(member, value[member.name])])),
	};
}

const yesOrNo: readonly Choice[] = [
	{ value: true, label: "Yes" },
	{ value: false, label: "No" },
];

function schemaOf({ title, type, options }: Member, value: Json | undefined): JsonSchema {
	switch (type) {
		case "list":
			return { title, type: "array", items: options ? { "x-choices": options } : { type: "string" } };
		case "object":
			return { title, type };
		case "file":
			return { title, format: "file" };
		// Unlike a switch, it can also be left as it is.
		case "boolean":
			return { title, type, "x-choices": yesOrNo };
	}
	const isNumber = type === "integer" || type === "number";
	if (options) return { title, ...(isNumber && { type }), "x-choices": options };
	if (isNumber && (value === undefined || typeof value === "number")) return { title, type };
	if (value !== undefined && typeof value !== "string") return { title };
	return { title, type: "string", ...(type === "time" && { examples: ["2026-01-31"] }) };
}

/** The members of a value that are not listed. */
export function unlisted(members: readonly Member[], value: JsonObject): string[] {
	const known = new Set(members.map(({ name }) => name));
	return Object.keys(value).filter((name) => !known.has(name));
}
