import { quoted, raw } from "./string";
import type { Token, TokenKind } from "./token";

// The lexer of the expression language, equivalent to the server's. It never fails:
// unknown input becomes "error" tokens.

export const keywords: ReadonlySet<string> = new Set([
	"not",
	"in",
	"or",
	"and",
	"matches",
	"contains",
	"startsWith",
	"endsWith",
	"let",
	"if",
	"else",
]);

const space = /\s/u;
const letter = /[\p{L}_$]/u;
const alphanumeric = /[\p{L}\p{Nd}_$]/u;
const numeral =
	/^\.?(?:0[xX][0-9a-fA-F_]*|0[oO][0-7_]*|0[bB][01_]*|[0-9][0-9_]*)(?:\.(?!\.)[0-9_]*)?(?:[eE][-+]?[0-9_]*)?/;
const doubled = /^(?:\|\||::|\?[.?]|[&!=*<>][&=*]|\.\.)/;

/** Tokenizes the expression between two offsets of a text. */
export function lex(text: string, from = 0, end = text.length): Token[] {
	const tokens: Token[] = [];
	let at = from;
	const add = (kind: TokenKind, to: number, more: { value?: string; message?: string } = {}) => {
		tokens.push({ kind, from: at, to, value: text.slice(at, to), ...more });
		at = to;
	};
	while (at < end) {
		const c = String.fromCodePoint(text.codePointAt(at) as number);
		const two = text.slice(at, Math.min(at + 2, end));
		if (space.test(c)) at += c.length;
		else if (two === "//") add("comment", lineEnd(text, at, end));
		else if (two === "/*") comment(text, at, end, add);
		else if (c === "'" || c === '"') literal(quoted(text, at, end), add);
		else if (c === "`") literal(raw(text, at, end), add);
		else if (/[0-9]/.test(c) || /^\.[0-9]/.test(two)) number(text, at, end, add);
		else if ("([{)]}".includes(c)) add("bracket", at + 1);
		else if (c === "#") element(text, at, end, add);
		else if (doubled.test(two)) add("operator", at + 2);
		else if (",;%+-^&!=*<>|:?/.".includes(c)) add("operator", at + 1);
		else if (letter.test(c)) word(text, at, end, add);
		else add("error", at + c.length, { message: `unexpected character "${c}"` });
	}
	return tokens;
}

type Add = (kind: TokenKind, to: number, more?: { value?: string; message?: string }) => void;

function lineEnd(text: string, from: number, end: number): number {
	const at = text.indexOf("\n", from);
	return at < 0 || at > end ? end : at;
}

function comment(text: string, from: number, end: number, add: Add): void {
	const close = text.indexOf("*/", from + 2);
	if (close < 0 || close + 2 > end) add("error", end, { message: "the comment is not closed: */ is missing" });
	else add("comment", close + 2);
}

function literal(read: { to: number; value: string; message?: string }, add: Add): void {
	const { to, value, message } = read;
	if (message === undefined) add("string", to, { value });
	else add("error", to, { value, message });
}

function number(text: string, from: number, end: number, add: Add): void {
	let to = from + (numeral.exec(text.slice(from, end))?.[0].length ?? 1);
	if (to >= end || !alphanumeric.test(charAt(text, to))) {
		add("number", to);
		return;
	}
	while (to < end && alphanumeric.test(charAt(text, to))) to += charAt(text, to).length;
	add("error", to, { message: `"${text.slice(from, to)}" is not a number` });
}

/** The element of a predicate: # or ##, optionally followed by a name. */
function element(text: string, from: number, end: number, add: Add): void {
	let to = from + (text[from + 1] === "#" && from + 1 < end ? 2 : 1);
	add("operator", to);
	const name = to;
	while (to < end && alphanumeric.test(charAt(text, to))) to += charAt(text, to).length;
	if (to > name) add("name", to);
}

function word(text: string, from: number, end: number, add: Add): void {
	let to = from;
	while (to < end && alphanumeric.test(charAt(text, to))) to += charAt(text, to).length;
	const value = text.slice(from, to);
	const bytes = /^[bB]$/.test(value) && to < end && /["']/.test(text[to] as string);
	if (bytes) literal(quoted(text, to, end), add);
	else add(keywords.has(value) ? "keyword" : "name", to);
}

function charAt(text: string, at: number): string {
	return String.fromCodePoint(text.codePointAt(at) as number);
}
