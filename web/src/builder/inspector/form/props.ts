import type { Json } from "@/builder/model";
import type { FieldPlan } from "./plan";
import type { JsonSchema } from "./schema";

export interface FieldProps {
	plan: FieldPlan;
	value: Json | undefined;
	/** With undefined the member goes. */
	onChange: (value: Json | undefined) => void;
	/** From the top of the document. */
	pointer: string;
	/** Where the references of the schema lead. */
	root: JsonSchema;
	/** Whether an expression can stand in its place; true unless given. */
	expressions?: Expressions;
}

/** Where expressions can stand: anywhere, nowhere, or in text only. */
export type Expressions = boolean | "text";
