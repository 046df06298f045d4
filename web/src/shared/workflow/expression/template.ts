// Splits strings with ${{ }} expressions like the server does.

export interface Span {
	/** The expression without its delimiters. */
	readonly from: number;
	readonly to: number;
	/** With its delimiters. */
	readonly open: number;
	readonly close: number;
	/** Whether the closing }} is missing. */
	readonly unclosed: boolean;
}

/** The expressions in a string. $${{ is an escaped ${{. */
export function spans(text: string): Span[] {
	const out: Span[] = [];
	let at = 0;
	for (;;) {
		const open = text.indexOf("${{", at);
		if (open < 0) return out;
		if (open > at && text[open - 1] === "$") {
			at = open + 3;
			continue;
		}
		const from = open + 3;
		const to = expressionEnd(text, from);
		if (to < 0) {
			out.push({ from, to: text.length, open, close: text.length, unclosed: true });
			return out;
		}
		out.push({ from, to, open, close: to + 2, unclosed: false });
		at = to + 2;
	}
}

/**
 * The expression of a field that takes a bare one, such as if: the whole text, or the
 * contents of a ${{ }} around it.
 */
export function bareSpan(text: string): Span {
	const open = text.length - text.trimStart().length;
	if (!text.startsWith("${{", open)) return { from: 0, to: text.length, open: 0, close: text.length, unclosed: false };
	return spans(text)[0] ?? { from: 0, to: text.length, open: 0, close: text.length, unclosed: false };
}

/** The position of the closing }}, ignoring braces inside strings, comments and maps. */
function expressionEnd(text: string, from: number): number {
	let braces = 0;
	let i = from;
	while (i < text.length) {
		const c = text[i];
		if (c === '"' || c === "'" || c === "`") {
			i = literalEnd(text, i);
			if (i < 0) return -1;
			continue;
		}
		if (text.startsWith("/*", i)) {
			const end = text.indexOf("*/", i + 2);
			if (end < 0) return -1;
			i = end + 2;
			continue;
		}
		if (text.startsWith("//", i)) {
			i = commentEnd(text, i);
			continue;
		}
		if (c === "{") braces++;
		else if (c === "}" && braces > 0) braces--;
		else if (text.startsWith("}}", i)) return i;
		i++;
	}
	return -1;
}

function literalEnd(text: string, from: number): number {
	const quote = text[from];
	for (let i = from + 1; i < text.length; i++) {
		if (text[i] === "\\" && quote !== "`") i++;
		else if (text[i] === quote && quote === "`" && text[i + 1] === "`") i++;
		else if (text[i] === quote) return i + 1;
	}
	return -1;
}

function commentEnd(text: string, from: number): number {
	const ends = [text.indexOf("\n", from), text.indexOf("}}", from)].filter((end) => end >= 0);
	return Math.min(text.length, ...ends);
}
