/** A string literal: its end, its value, and an error if it is malformed. */
export interface Literal {
	readonly to: number;
	readonly value: string;
	readonly message?: string;
}

const simple: Readonly<Record<string, string>> = {
	a: "\x07",
	b: "\b",
	f: "\f",
	n: "\n",
	r: "\r",
	t: "\t",
	v: "\v",
	"\\": "\\",
	"'": "'",
	'"': '"',
};

/** Reads a string in single or double quotes. */
export function quoted(text: string, from: number, end: number): Literal {
	const quote = text[from];
	let value = "";
	let message: string | undefined;
	let i = from + 1;
	while (i < end) {
		const c = text[i] as string;
		if (c === quote) return { to: i + 1, value, ...(message !== undefined && { message }) };
		if (c === "\n") break;
		if (c !== "\\") {
			value += c;
			i++;
			continue;
		}
		const read = readEscape(text, i, end);
		if (!read) message = "the text has an escape that does not exist; write \\\\ for a backslash";
		value += read?.value ?? "";
		i = read?.to ?? i + 2;
	}
	return { to: Math.min(i, end), value, message: "the text is not closed: a quote is missing" };
}

function readEscape(text: string, from: number, end: number): { to: number; value: string } | undefined {
	const c = text[from + 1] ?? "";
	const known = simple[c];
	if (known !== undefined) return { to: from + 2, value: known };
	const rest = text.slice(from, Math.min(end, from + 12));
	const found =
		/^\\([0-7]{3})/.exec(rest) ??
		/^\\x([0-9a-fA-F]{2})/.exec(rest) ??
		/^\\u\{([0-9a-fA-F]{1,6})\}/.exec(rest) ??
		/^\\u([0-9a-fA-F]{4})/.exec(rest) ??
		/^\\U([0-9a-fA-F]{8})/.exec(rest);
	if (!found) return undefined;
	const code = Number.parseInt(found[1] as string, /[0-7]/.test(c) ? 8 : 16);
	if (code > 0x10ffff) return undefined;
	return { to: from + found[0].length, value: String.fromCodePoint(code) };
}

/** Reads a string in backticks, where a doubled backtick is an escaped one. */
export function raw(text: string, from: number, end: number): Literal {
	let i = from + 1;
	let value = "";
	while (i < end) {
		if (text[i] !== "`") {
			value += text[i++];
		} else if (text[i + 1] === "`" && i + 1 < end) {
			value += "`";
			i += 2;
		} else {
			return { to: i + 1, value };
		}
	}
	return { to: end, value, message: "the text is not closed: a quote is missing" };
}
