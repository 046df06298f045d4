/** One line of a JSON value as displayed. */
export interface JsonLine {
	/** The JSON pointer of the value that starts on this line. */
	path: string;
	depth: number;
	key?: string;
	/** The value, if it fits on the line. */
	text: string;
	kind: "string" | "number" | "boolean" | "null" | "open" | "close" | "closed" | "empty" | "chip";
	/** The value that a chip stands for. */
	value?: unknown;
	/** The number of items in a container. */
	size?: number;
	last: boolean;
	/** Which part of a value that does not fit on one line; 0 for the first. */
	part?: number;
}

const escaped = (key: string) => key.replaceAll("~", "~0").replaceAll("/", "~1");

/** Browsers take seconds to lay out a megabyte of text. Copying still copies everything. */
const shortened = (text: string) =>
	text.length > 2_000 ? `${text.slice(0, 2_000)}… (${text.length - 2_000} more)` : text;

/**
 * jsonLines formats a value as lines, without the contents of collapsed containers. Values
 * at the given paths become chips. It stops after `most` lines.
 */
export function jsonLines(
	value: unknown,
	closed: (path: string, depth: number, size: number) => boolean,
	most = 100_000,
	chips?: ReadonlySet<string>,
): JsonLine[] {
	const lines: JsonLine[] = [];
	const add = (value: unknown, path: string, depth: number, key: string | undefined, last: boolean) => {
		if (lines.length >= most) return;
		if (chips?.has(path)) {
			lines.push({ path, depth, key, text: "", kind: "chip", value, last });
			return;
		}
		if (value === null || typeof value !== "object") {
			const kind = value === null || value === undefined ? "null" : (typeof value as "string" | "number" | "boolean");
			lines.push({ path, depth, key, text: shortened(JSON.stringify(value) ?? "null"), kind, last });
			return;
		}
		const list = Array.isArray(value);
		const members: [string, unknown][] = list ? value.map((one, at) => [String(at), one]) : Object.entries(value);
		const [open, close] = list ? "[]" : "{}";
		const base = { path, depth, key, size: members.length };
		if (members.length === 0) {
			lines.push({ ...base, text: `${open}${close}`, kind: "empty", last });
		} else if (closed(path, depth, members.length)) {
			lines.push({ ...base, text: `${open}…${close}`, kind: "closed", last });
		} else {
			lines.push({ ...base, text: open ?? "", kind: "open", last: true });
			members.forEach(([name, member], at) => {
				add(member, `${path}/${escaped(name)}`, depth + 1, list ? undefined : name, at === members.length - 1);
			});
			lines.push({ path, depth, text: close ?? "", kind: "close", last });
		}
	};
	add(value, "", 0, undefined, true);
	return lines;
}

/**
 * wrapLines divides values that are longer than a line, which has room for a number of characters. The parts have the
 * same height as other lines, so that only the visible ones need to be laid out.
 */
export function wrapLines(lines: readonly JsonLine[], room: number): JsonLine[] {
	return lines.flatMap((line) => {
		if (line.kind !== "string") return line;
		// Indentation is two characters wide, as is the space for the chevron.
		const free = room - 2 * (line.depth + 1);
		const first = Math.max(least, free - (line.key === undefined ? 0 : JSON.stringify(line.key).length + 2));
		const parts = divide(line.text, first, Math.max(least, free));
		return parts.map((text, part): JsonLine => {
			const last = part === parts.length - 1;
			return { ...line, text, part, key: part === 0 ? line.key : undefined, last: last ? line.last : true };
		});
	});
}

/** A value is never divided into shorter parts, however deep it is. */
const least = 16;

/** Divides a text, preferably after a space. Characters are not torn apart. */
function divide(text: string, first: number, others: number): string[] {
	const characters = [...text];
	const out: string[] = [];
	for (let at = 0; at < characters.length; ) {
		const size = out.length === 0 ? first : others;
		let end = Math.min(characters.length, at + size);
		if (end < characters.length) {
			const space = characters.lastIndexOf(" ", end - 1);
			if (space > at + size / 2) end = space + 1;
		}
		out.push(characters.slice(at, end).join(""));
		at = end;
	}
	return out;
}
