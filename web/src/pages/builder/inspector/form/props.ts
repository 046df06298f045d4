import type { ComponentType } from "react";
import type { JsonSchema } from "@/shared/listed/schema";
import type { Json, JsonObject } from "@/shared/workflow/model";
import type { FieldPlan } from "./plan";

export interface FieldProps {
	plan: FieldPlan;
	value: Json | undefined;
	/** undefined removes the field. */
	onChange: (value: Json | undefined) => void;
	/** From the root of the document. */
	pointer: string;
	/** The root for schema references. */
	root: JsonSchema;
	/** Whether an expression is allowed; true by default. */
	expressions?: Expressions;
}

export interface NestingProps extends FieldProps {
	/** Renders an object inside a field. Forms and fields contain each other, so the form passes itself down. */
	Form: ComponentType<SchemaFormProps>;
}

/** Where expressions are allowed: everywhere, nowhere, or only in text. */
export type Expressions = boolean | "text";

export interface SchemaFormProps {
	schema: JsonSchema;
	/** The root for schema references; the schema itself by default. */
	root?: JsonSchema;
	value: JsonObject;
	onChange: (name: string, value: Json | undefined) => void;
	/** Of the object, from the root of the document. */
	pointer: string;
	/** Fields that are rendered elsewhere. */
	without?: readonly string[];
	/** Fields that take an expression without ${{ }}. */
	bare?: readonly string[];
	/** Where expressions are allowed, per field or for all; everywhere by default. */
	expressions?: Expressions | Readonly<Record<string, Expressions>>;
	/** Hides no fields. */
	all?: boolean;
	/** A key under which the expanded state is remembered. */
	name?: string;
}
