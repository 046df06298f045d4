import type { Json } from "../model/types";

// Formats scalars: plain where every parser reads them as text, otherwise quoted or as a block scalar.

const longLine = 80;

const words = new Set(["null", "true", "false", "y", "n", "yes", "no", "on", "off"]);

/** What some version of YAML may read as a number, time or date. */
const numberLike =
	/^(?:[0-9][0-9_.,:]*(?:[eE][-+]?[0-9]+)?|0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9]{4}-[0-9].*)$/;

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;
const literal = /^[\n\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}]*$/u;

export function isPlain(text: string): boolean {
	if (!/^[\p{L}\p{Nd}$/_(]/u.test(text)) return false;
	if (text.endsWith(" ") || text.endsWith(":") || text.includes(": ") || text.includes(" #")) return false;
	return !words.has(text.toLowerCase()) && !numberLike.test(text) && printable.test(text);
}

/** Whether text can and should be written as a block scalar. */
export function isLiteral(text: string): boolean {
	if (!text.includes("\n") && [...text].length <= longLine) return false;
	return /[^ \t\n]/.test(text) && literal.test(text);
}

export function doubleQuoted(text: string): string {
	let out = "";
	for (const c of text) {
		const code = c.codePointAt(0) as number;
		if (c === '"' || c === "\\") out += `\\${c}`;
		else if (c === "\n") out += "\\n";
		else if (c === "\t") out += "\\t";
		else if (printable.test(c)) out += c;
		else if (code <= 0xff) out += `\\x${hex(code, 2)}`;
		else if (code <= 0xffff) out += `\\u${hex(code, 4)}`;
		else out += `\\U${hex(code, 8)}`;
	}
	return `"${out}"`;
}

function hex(code: number, digits: number): string {
	return code.toString(16).toUpperCase().padStart(digits, "0");
}

/** Text on one line; in flow style fewer characters are allowed without quotes. */
export function oneLine(text: string, flow = false): string {
	if (isPlain(text) && !(flow && /[,[\]{}]/.test(text))) return text;
	if (printable.test(text) && /["\\]/.test(text)) return `'${text.replaceAll("'", "''")}'`;
	return doubleQuoted(text);
}

/** A block scalar indented to a column, without a final line break. */
export function blockText(text: string, column: number): string {
	const indent = " ".repeat(column);
	const body = text.endsWith("\n") ? text.slice(0, -1) : text;
	const header = /^[ \t\n]/.test(text) ? "|2" : "|";
	const chomp = !text.endsWith("\n") ? "-" : body.endsWith("\n") ? "+" : "";
	return `${header}${chomp}\n${body
		.split("\n")
		.map((line) => (line === "" ? "" : indent + line))
		.join("\n")}`;
}

/** A scalar on one line. */
export function scalarLine(value: Json, flow = false): string {
	return typeof value === "string" ? oneLine(value, flow) : JSON.stringify(value);
}
