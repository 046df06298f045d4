import { isJson, items, list, members, object, type Raw } from "@/api/raw-json";
import { type Column, type ColumnType, encode, plainText } from "./value";

export type Operator =
	| "="
	| "!="
	| "<"
	| "<="
	| ">"
	| ">="
	| "in"
	| "contains"
	| "starts_with"
	| "is_null"
	| "is_not_null";

/** Condition is a row of the filter form. The value is as people write it; several are separated by commas. */
export interface Condition {
	column: string;
	op: Operator;
	text: string;
}

const names: Record<Operator, string> = {
	"=": "equals",
	"!=": "does not equal",
	"<": "is less than",
	"<=": "is at most",
	">": "is greater than",
	">=": "is at least",
	in: "is one of",
	contains: "contains",
	starts_with: "starts with",
	is_null: "is null",
	is_not_null: "is not null",
};

const timeNames: Partial<Record<Operator, string>> = { "<": "is before", ">": "is after" };

/** operatorName returns the name of an operator for values of a type. */
export function operatorName(op: Operator, type: ColumnType): string {
	return (type === "time" && timeNames[op]) || names[op];
}

const compared: Operator[] = ["=", "!=", "<", "<=", ">", ">=", "in"];
const nulls: Operator[] = ["is_null", "is_not_null"];

const operators: Record<ColumnType, Operator[]> = {
	text: ["=", "!=", "contains", "starts_with", "in", "<", "<=", ">", ">=", ...nulls],
	number: [...compared, ...nulls],
	time: [...compared, ...nulls],
	boolean: ["=", "!=", ...nulls],
	json: nulls,
	file: nulls,
};

/** operatorsOf returns the operators for values of a type. */
export function operatorsOf(type: ColumnType): Operator[] {
	return operators[type];
}

export function hasValue(op: Operator): boolean {
	return op !== "is_null" && op !== "is_not_null";
}

/** filterOf returns the filter of the API that all conditions must meet; undefined for none. */
export function filterOf(conditions: readonly Condition[], columns: readonly Column[]): Raw | undefined {
	if (conditions.length === 0) return undefined;
	return object([["and", list(conditions.map((condition) => conditionOf(condition, columns)))]]);
}

function conditionOf({ column, op, text }: Condition, columns: readonly Column[]): Raw {
	const type = columns.find(({ name }) => name === column)?.type ?? "text";
	const condition = (apiOp: string, value: Raw) =>
		object([
			["column", JSON.stringify(column)],
			["op", JSON.stringify(apiOp)],
			["value", value],
		]);
	if (!hasValue(op)) return condition("is_null", String(op === "is_null"));
	if (op === "in") return condition(op, list(text.split(",").map((one) => encode(one.trim(), type))));
	return condition(op, encode(text, type));
}

/** conditionsOf is the inverse of filterOf. It returns undefined for filters that need the JSON editor. */
export function conditionsOf(filter: Raw, columns: readonly Column[]): Condition[] | undefined {
	if (!isJson(filter)) return undefined;
	const top = members(filter);
	const all = top.size === 1 && top.has("and") ? items(top.get("and") ?? "") : [filter];
	const conditions = all.map((one) => readCondition(members(one), columns));
	return conditions.every((one) => one !== undefined) ? conditions : undefined;
}

function readCondition(given: Map<string, Raw>, columns: readonly Column[]): Condition | undefined {
	const name = given.get("column");
	const column = columns.find((one) => JSON.stringify(one.name) === name);
	if (!column || given.size > 3) return undefined;
	const value = given.get("value");
	const op = JSON.parse(given.get("op") ?? '""') as Operator;
	if (op === "is_null") {
		return { column: column.name, op: value === "false" ? "is_not_null" : op, text: "" };
	}
	if (value === undefined || !operatorsOf(column.type).includes(op)) return undefined;
	if (op !== "in") return { column: column.name, op, text: plainText(value, column.type) };
	const texts = items(value).map((one) => plainText(one, column.type));
	return texts.some((one) => one.includes(",") || one !== one.trim())
		? undefined
		: { column: column.name, op, text: texts.join(", ") };
}
