import type { Json } from "@/shared/workflow/model";

/** A value to choose from. */
export interface Choice {
	readonly value: string | number | boolean;
	readonly label: string;
}

/** The subset of JSON Schema that actions and the workflow format use. */
export interface JsonSchema {
	readonly $ref?: string;
	readonly $defs?: Readonly<Record<string, JsonSchema>>;
	readonly type?: string | readonly string[];
	readonly title?: string;
	readonly description?: string;
	readonly default?: Json;
	readonly const?: Json;
	readonly enum?: readonly Json[];
	readonly enumDescriptions?: readonly string[];
	readonly examples?: readonly Json[];
	readonly format?: string;
	readonly contentMediaType?: string;
	/** How a form shows text of an operation. */
	readonly "x-format"?: string;
	/** The field cannot contain expressions. */
	readonly "x-literal"?: string;
	/** The operations that list the values of an input, and the members of an object. */
	readonly "x-options"?: string;
	readonly "x-fields"?: string;
	/** The inputs that decide what is listed, and those of them without which nothing is. */
	readonly "x-depends-on"?: readonly string[];
	readonly "x-needs"?: readonly string[];
	readonly "x-searchable"?: boolean;
	/** Values to choose from, beside which others can be entered. */
	readonly "x-choices"?: readonly Choice[];
	readonly minLength?: number;
	readonly maxLength?: number;
	readonly minimum?: number;
	readonly maximum?: number;
	readonly properties?: Readonly<Record<string, JsonSchema | boolean>>;
	readonly additionalProperties?: JsonSchema | boolean;
	readonly required?: readonly string[];
	readonly items?: JsonSchema;
	readonly oneOf?: readonly JsonSchema[];
	readonly anyOf?: readonly JsonSchema[];
	readonly allOf?: readonly JsonSchema[];
	readonly if?: JsonSchema;
	readonly then?: JsonSchema;
	readonly else?: JsonSchema;
}

/** The schema with references and the "unless it is an expression" branch resolved. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
	let out = schema;
	if (schema.$ref?.startsWith("#/$defs/")) {
		const target = root.$defs?.[schema.$ref.slice("#/$defs/".length)];
		const { $ref: _, ...own } = schema;
		out = target ? { ...resolve(target, root), ...own } : own;
	}
	if (out.else && out.if?.$ref === "#/$defs/expression") {
		const { if: _, else: plain, ...own } = out;
		out = { ...plain, ...own };
	}
	return out;
}

/** Applies the conditional parts of a schema, selected by a constant field of the value. */
export function narrow(schema: JsonSchema, value: unknown): JsonSchema {
	const members = value && typeof value === "object" ? (value as Record<string, unknown>) : {};
	let out = schema;
	for (const part of schema.allOf ?? []) {
		if (!part.then || !part.if?.properties || !holds(part.if.properties, members)) continue;
		out = { ...out, required: [...(out.required ?? []), ...(part.then.required ?? [])] };
		const allowed = part.then.additionalProperties === false ? part.then.properties : undefined;
		if (!allowed || !out.properties) continue;
		const properties = Object.entries(out.properties).filter(([name]) => name in allowed);
		out = { ...out, properties: Object.fromEntries(properties) };
	}
	return out;
}

function holds(conditions: NonNullable<JsonSchema["properties"]>, members: Record<string, unknown>): boolean {
	return Object.entries(conditions).every(
		([name, schema]) => typeof schema === "object" && schema.const !== undefined && members[name] === schema.const,
	);
}

export function typesOf(schema: JsonSchema): readonly string[] {
	if (schema.type === undefined) return [];
	return typeof schema.type === "string" ? [schema.type] : schema.type;
}
