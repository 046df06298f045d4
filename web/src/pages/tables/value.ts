import type { Schema } from "@/api/client";
import { indent, isJson, type Raw } from "@/api/raw-json";
import { formatBytes } from "@/ui/format";

export type Column = Schema["TableColumn"];
export type ColumnType = Column["type"];

const number = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** Longer values are edited in a dialog. */
const maxInline = 120;

/** How much of a value a cell renders. */
const maxShown = 300;

export function isNull(raw: Raw | undefined): boolean {
	return raw === undefined || raw === "null";
}

/** shortTime omits a fraction of zeros, which the API always returns. */
function shortTime(text: string): string {
	return text.replace(/(\.\d*?)0+Z$/, "$1Z").replace(".Z", "Z");
}

/** FileRef is the value of a file column. */
export interface FileRef {
	$file: string;
	name: string;
	size: number;
}

/** fileOf returns the reference to a file. */
function fileOf(raw: Raw): FileRef {
	return JSON.parse(raw);
}

/** fileIn returns the file in a value, if there is one. */
export function fileIn(raw: Raw | undefined, type: ColumnType): FileRef | undefined {
	return type === "file" && raw !== undefined && !isNull(raw) ? fileOf(raw) : undefined;
}

/** plainText returns a value as people read and write it: a file is its id. Null is empty. */
export function plainText(raw: Raw | undefined, type: ColumnType): string {
	if (raw === undefined || isNull(raw)) return "";
	if (type === "file") return fileOf(raw).$file;
	const text = raw.startsWith('"') && type !== "json" ? (JSON.parse(raw) as string) : raw;
	return type === "time" ? shortTime(text) : text;
}

/** editText returns a value as the text to edit. */
export function editText(raw: Raw | undefined, type: ColumnType): string {
	const text = plainText(raw, type);
	return type === "json" ? indent(text) : text;
}

/** shownText returns the beginning of a value, for a cell. */
export function shownText(raw: Raw | undefined, type: ColumnType): string {
	const file = fileIn(raw, type);
	if (file) return `${file.name} (${formatBytes(file.size)})`;
	const text = plainText(raw, type);
	return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

/** needsDialog reports whether a value is too large to edit in its cell. */
export function needsDialog(raw: Raw | undefined, type: ColumnType): boolean {
	if (type === "json") return true;
	const text = plainText(raw, type);
	return type === "text" && (text.length > maxInline || text.includes("\n"));
}

/** encode returns the JSON of a value that is not empty. What is not of the type is sent as text, and the API says why it is wrong. */
export function encode(text: string, type: ColumnType): Raw {
	const trimmed = text.trim();
	if (type === "number" && number.test(trimmed)) return trimmed;
	if (type === "boolean" && (trimmed === "true" || trimmed === "false")) return trimmed;
	if (type === "file") return JSON.stringify({ $file: trimmed });
	return JSON.stringify(type === "text" ? text : trimmed);
}

/**
 * readCell returns the value of an edited text. As in CSV files, an empty text is null, or
 * an empty text in a required text column.
 */
export function readCell(text: string, column: Column): { raw: Raw } | { problem: string } {
	const { type, required } = column;
	if (text === "") return { raw: type === "text" && required ? '""' : "null" };
	if (type !== "json") return { raw: encode(text, type) };
	if (text.trim() === "") return { raw: "null" };
	if (isJson(text)) return { raw: text.trim() };
	const hint = /^\s*[[{"]/.test(text) ? "" : ` Put text in quotes: ${JSON.stringify(text.trim().slice(0, 40))}`;
	return { problem: `This is not valid JSON.${hint}` };
}
