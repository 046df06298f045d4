import { definedKeys, isObject } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { blockText, isLiteral, isPlain, oneLine, scalarLine } from "./scalar";

// Formats plain values as YAML in block style. Short lists of words and numbers are
// written in brackets, as people write needs.

export type Kind = "workflow" | "step" | "trigger" | "plain";

const orders: Readonly<Record<Kind, readonly string[]>> = {
	workflow: ["name", "description", "triggers", "settings", "steps", "layout"],
	step: [
		...["id", "name", "needs", "if", "join", "foreach", "parallel", "repeat", "uses", "with"],
		...["retry", "timeout", "on_error", "mask", "steps"],
	],
	trigger: ["id", "type"],
	plain: [],
};

/** The kind of a member of an object, or of the entries of a list in it. */
export function kindOf(kind: Kind, member: string): Kind {
	if (member === "steps" && (kind === "workflow" || kind === "step")) return "step";
	return member === "triggers" && kind === "workflow" ? "trigger" : "plain";
}

/** The keys of an object in output order. */
export function ordered(value: JsonObject, kind: Kind): string[] {
	const first = orders[kind].filter((key) => value[key] !== undefined);
	return [...first, ...definedKeys(value).filter((key) => !first.includes(key))];
}

const bracketWidth = 72;

function inBrackets(value: Json): boolean {
	if (!Array.isArray(value) || value.some((item) => Array.isArray(item) || isObject(item))) return false;
	const texts = (value as readonly Json[]).map((item) => scalarLine(item, true));
	return texts.join(", ").length <= bracketWidth && !texts.some((text) => /^["']/.test(text) && text.length > 32);
}

/** A value on one line, in flow style. */
export function flow(value: Json, kind: Kind = "plain"): string {
	if (Array.isArray(value)) return `[${value.map((item: Json) => flow(item, kind)).join(", ")}]`;
	if (!isObject(value)) return scalarLine(value, true);
	const members = ordered(value, kind).map((key) => flowPair(key, value[key] as Json, kind));
	return `{${members.join(", ")}}`;
}

export function flowPair(key: string, value: Json, kind: Kind = "plain"): string {
	return `${oneLine(key, true)}: ${flow(value, kindOf(kind, key))}`;
}

/** A key and its value at a column, with line breaks but without the initial indentation. */
export function pair(key: string, value: Json, column: number, kind: Kind = "plain"): string {
	return `${oneLine(key)}:${after(value, column, kindOf(kind, key))}`;
}

/** A list entry with its dash at a column. */
export function item(value: Json, column: number, kind: Kind = "plain"): string {
	if (isObject(value) && definedKeys(value).length > 0) return `- ${object(value, column + 2, kind)}`;
	if (Array.isArray(value) && value.length > 0 && !inBrackets(value)) return `- ${list(value, column + 2, kind)}`;
	return `-${after(value, column, kind)}`;
}

/** What follows a colon or a dash, up to the end of its last line. */
export function after(value: Json, column: number, kind: Kind): string {
	const inner = column + 2;
	const indent = " ".repeat(inner);
	if (isObject(value)) return definedKeys(value).length === 0 ? " {}\n" : `\n${indent}${object(value, inner, kind)}`;
	if (Array.isArray(value)) {
		return value.length === 0 || inBrackets(value) ? ` ${flow(value)}\n` : `\n${indent}${list(value, inner, kind)}`;
	}
	if (typeof value === "string" && !isPlain(value) && isLiteral(value)) return ` ${blockText(value, inner)}\n`;
	return ` ${scalarLine(value)}\n`;
}

function object(value: JsonObject, column: number, kind: Kind): string {
	return ordered(value, kind)
		.map((key) => pair(key, value[key] as Json, column, kind))
		.join(" ".repeat(column));
}

function list(value: readonly Json[], column: number, kind: Kind): string {
	return value.map((entry) => item(entry, column, kind)).join(" ".repeat(column));
}

/** A whole document. */
export function document(value: JsonObject, kind: Kind = "plain"): string {
	return definedKeys(value).length === 0 ? "{}\n" : object(value, 0, kind);
}
