import { isEmpty, type Listed, listedBy, wholeOf, words } from "@/shared/listed/field";
import { type Choice, type JsonSchema, narrow, resolve, typesOf } from "@/shared/listed/schema";
import type { Json } from "@/shared/workflow/model";

// Decides which controls a form shows for a schema, and in which order.

export type Kind =
	| "text"
	| "lines"
	| "code"
	| "number"
	| "boolean"
	| "choice"
	| "choices"
	| "map"
	| "object"
	| "list"
	| "variants"
	| "any"
	/** The id of another workflow. */
	| "workflow"
	/** A file of an earlier step, as an expression. */
	| "file"
	/** A value that can be chosen from a list. */
	| "listed"
	/** An object whose members are listed. */
	| "fields"
	/** A bare expression. */
	| "expression";

export interface Option {
	readonly value: string;
	readonly label: string;
	readonly hint?: string;
}

export interface FieldPlan {
	readonly name: string;
	readonly label: string;
	readonly kind: Kind;
	readonly required: boolean;
	readonly hint?: string;
	readonly default?: Json;
	/** Shown in an empty field. */
	readonly placeholder?: string;
	readonly whole?: boolean;
	readonly minimum?: number;
	readonly maximum?: number;
	readonly options?: readonly Option[];
	/** For the items of a list, and the values of a map with a value schema. */
	readonly items?: FieldPlan;
	/** For a field with several alternative schemas. */
	readonly variants?: readonly { label: string; schema: JsonSchema }[];
	/** For an object, whose fields depend on its value. */
	readonly schema?: JsonSchema;
	/** For what the account of a connection lists. */
	readonly listed?: Listed;
	/** For a listed value whose list is known. */
	readonly choices?: readonly Choice[];
	/** The field cannot contain expressions. */
	readonly literal?: boolean;
}

export interface FormPlan {
	readonly main: readonly FieldPlan[];
	/** Fields shown on demand. */
	readonly more: readonly FieldPlan[];
}

/** With so few optional fields, nothing is hidden. */
const few = 4;

/**
 * The form of an object schema. Required fields come first, in the order of `required`. With `all`, no others are
 * hidden.
 */
export function planForm(schema: JsonSchema, root: JsonSchema, value?: unknown, all = false): FormPlan {
	const fields = planMembers(schema, root, value);
	if (all) return { main: fields, more: [] };
	const main = fields.filter((field) => field.required);
	const more = fields.filter((field) => !field.required);
	if (main.length === 0 && more.length <= few) return { main: more, more: [] };
	if (main.length === 0) return { main: more.slice(0, 1), more: more.slice(1) };
	return { main, more };
}

export function planMembers(schema: JsonSchema, root: JsonSchema, value?: unknown): FieldPlan[] {
	const narrowed = narrow(resolve(schema, root), value);
	const required = [...new Set(narrowed.required ?? [])];
	const names = Object.keys(narrowed.properties ?? {});
	const order = [
		...required.filter((name) => names.includes(name)),
		...names.filter((name) => !required.includes(name)),
	];
	return order.map((name) => {
		const member = narrowed.properties?.[name];
		return planField(name, typeof member === "object" ? member : {}, root, required.includes(name));
	});
}

export function planField(name: string, schema: JsonSchema, root: JsonSchema, required: boolean): FieldPlan {
	const known = resolve(schema, root);
	const kind = kindOf(name, known);
	const listed = listedBy(known);
	const example = known.examples?.[0];
	return {
		name,
		label: known.title ?? words(name),
		kind,
		required,
		...(known.description !== undefined && { hint: known.description }),
		...(known.default !== undefined && { default: known.default }),
		...placeholderOf(known.default, example),
		...((kind === "number" || kind === "listed") && bounds(known)),
		...(kind === "choice" && { options: optionsOf(known) }),
		...(kind === "choices" && { options: optionsOf(resolve(known.items ?? {}, root)) }),
		...(kind === "list" && { items: planField("", known.items ?? {}, root, true) }),
		...(kind === "map" && mapItems(known, root)),
		...(kind === "variants" && { variants: variantsOf(known, root) }),
		...(kind === "object" && { schema: known }),
		...(listed && { listed }),
		...(known["x-choices"] && { choices: known["x-choices"] }),
		...(known["x-literal"] !== undefined && { literal: true }),
	};
}

function kindOf(name: string, schema: JsonSchema): Kind {
	if (schema.oneOf && schema.oneOf.length > 1) return "variants";
	if (schema["x-options"] !== undefined || schema["x-choices"]) return "listed";
	if (schema["x-fields"] !== undefined) return "fields";
	if (schema.enum) return "choice";
	if (schema.format === "file") return "file";
	const types = typesOf(schema).filter((type) => type !== "null");
	if (types.length === 0) return schema.properties ? "object" : "any";
	if (types.length > 1) return types.every((type) => type !== "object" && type !== "array") ? "text" : "any";
	switch (types[0]) {
		case "boolean":
			return "boolean";
		case "integer":
		case "number":
			return "number";
		case "array":
			return schema.items?.enum ? "choices" : "list";
		case "object":
			return schema.properties ? "object" : "map";
		default:
			return textKind(name, schema);
	}
}

const linesFormats = new Set(["multiline", "markdown", "html", "code"]);
const long = new Set(["message", "body", "text", "html", "prompt", "sql", "description"]);

function textKind(name: string, schema: JsonSchema): Kind {
	if (name === "workflow_id") return "workflow";
	if (name === "code" || schema.contentMediaType === "text/javascript") return "code";
	return long.has(name) || (schema["x-format"] && linesFormats.has(schema["x-format"])) ? "lines" : "text";
}

function placeholderOf(standard: Json | undefined, example: Json | undefined): { placeholder?: string } {
	if (typeof standard === "string" || typeof standard === "number") return { placeholder: String(standard) };
	return typeof example === "string" ? { placeholder: `such as ${example}` } : {};
}

function bounds(schema: JsonSchema): Partial<FieldPlan> {
	const whole = wholeOf(schema);
	return {
		...(whole !== undefined && { whole }),
		...(schema.minimum !== undefined && { minimum: schema.minimum }),
		...(schema.maximum !== undefined && { maximum: schema.maximum }),
	};
}

function optionsOf(schema: JsonSchema): Option[] {
	return (schema.enum ?? []).map((value, i) => {
		const hint = schema.enumDescriptions?.[i];
		return { value: String(value), label: optionLabel(String(value)), ...(hint !== undefined && { hint }) };
	});
}

/** Event names, methods and schemes are not changed; other names become words. */
function optionLabel(value: string): string {
	return /^[a-z]+(_[a-z]+)*$/.test(value) ? words(value) : value;
}

function mapItems(schema: JsonSchema, root: JsonSchema): { items?: FieldPlan } {
	if (typeof schema.additionalProperties !== "object") return {};
	return { items: planField("", schema.additionalProperties, root, true) };
}

function variantsOf(schema: JsonSchema, root: JsonSchema): { label: string; schema: JsonSchema }[] {
	return (schema.oneOf ?? []).map((part, i) => {
		const known = resolve(part, root);
		const named = known.title ?? known.required?.map(words).join(", ");
		return { label: named || `Form ${i + 1}`, schema: known };
	});
}

/** The first empty required field, which gets the focus after a step is added. */
export function firstEmpty(fields: readonly FieldPlan[], value: Readonly<Record<string, unknown>>): string | undefined {
	return fields.find((field) => field.required && isEmpty(value[field.name]))?.name;
}
