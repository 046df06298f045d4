/**
 * Raw is the text of a JSON value. Unlike a parsed value, it keeps all digits of its
 * numbers: those of tables and keys can have more than a JavaScript number holds.
 */
export type Raw = string;

const string = '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"';
const token = new RegExp(`\\s+|${string}|[{}[\\],:]|[^\\s{}[\\],:"]+`, "g");
const name = new RegExp(`^\\s*(${string})\\s*:`);

const opens = (piece: string) => piece === "{" || piece === "[";
const closes = (piece: string) => piece === "}" || piece === "]";

/** items returns the elements of a list, or the members of an object with their names. */
export function items(text: Raw): Raw[] {
	const found: Raw[] = [];
	let depth = 0;
	let from = 0;
	const take = (to: number) => {
		const item = text.slice(from, to).trim();
		if (item !== "") found.push(item);
		from = to + 1;
	};
	for (const { 0: piece, index } of text.matchAll(token)) {
		if (opens(piece)) {
			depth += 1;
			if (depth === 1) from = index + 1;
		} else if (closes(piece)) {
			depth -= 1;
			if (depth === 0) take(index);
		} else if (piece === "," && depth === 1) take(index);
	}
	return found;
}

/** members returns the members of an object by name. A map, because a name may be "__proto__". */
export function members(text: Raw): Map<string, Raw> {
	const found = new Map<string, Raw>();
	for (const item of items(text)) {
		const start = name.exec(item);
		if (start?.[1]) found.set(JSON.parse(start[1]) as string, item.slice(start[0].length).trim());
	}
	return found;
}

/** object returns an object with these members. */
export function object(entries: Iterable<readonly [string, Raw]>): Raw {
	return `{${Array.from(entries, ([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
}

/** list returns a list of these elements. */
export function list(elements: readonly Raw[]): Raw {
	return `[${elements.join(",")}]`;
}

const lineBreak = (depth: number) => `\n${"  ".repeat(depth)}`;

/** indent formats a value with line breaks. */
export function indent(text: Raw): Raw {
	let out = "";
	let depth = 0;
	let opened = false;
	for (const [piece] of text.matchAll(token)) {
		if (/^\s/.test(piece)) continue;
		if (closes(piece)) depth -= 1;
		if (opened !== closes(piece)) out += lineBreak(depth);
		out += piece;
		if (piece === ",") out += lineBreak(depth);
		if (piece === ":") out += " ";
		opened = opens(piece);
		if (opened) depth += 1;
	}
	return out;
}

/** isJson reports whether a text is JSON. */
export function isJson(text: string): boolean {
	try {
		JSON.parse(text);
		return true;
	} catch {
		return false;
	}
}

/** send is the body of a call whose text is given. */
export function send(text: Raw): { body: never; bodySerializer: () => Raw } {
	return { body: {} as never, bodySerializer: () => text };
}
