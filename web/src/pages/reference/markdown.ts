/** A piece of inline text. */
export type Inline = { kind: "text" | "code" | "strong"; text: string } | { kind: "link"; text: string; href: string };

export type Block =
	| { kind: "paragraph"; content: Inline[] }
	| { kind: "heading"; level: number; content: Inline[] }
	| { kind: "code"; text: string }
	| { kind: "list"; ordered: boolean; items: Inline[][] }
	| { kind: "table"; head: Inline[][]; rows: Inline[][][] };

/**
 * parse parses the Markdown that the API document uses: paragraphs, headings, fenced code,
 * flat lists, tables, and inline code, bold text and links. Everything else is text.
 */
export function parse(text: string): Block[] {
	const lines = text.trim().split("\n");
	const blocks: Block[] = [];
	for (let at = 0; at < lines.length; ) {
		const [block, next] = readBlock(lines, at);
		if (block) blocks.push(block);
		at = next;
	}
	return blocks;
}

const fence = /^\s*```/;
const heading = /^\s*(#{1,6})\s+(.+?)\s*#*\s*$/;
const bullet = /^\s*[-*]\s+(.*)$/;
const numbered = /^\s*\d+[.)]\s+(.*)$/;
const divider = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function readBlock(lines: string[], at: number): [Block | undefined, number] {
	const line = lines[at] ?? "";
	if (line.trim() === "") return [undefined, at + 1];
	if (fence.test(line)) return readCode(lines, at);
	const title = heading.exec(line);
	if (title) return [{ kind: "heading", level: title[1]?.length ?? 1, content: inline(title[2] ?? "") }, at + 1];
	if (isTable(lines, at)) return readTable(lines, at);
	if (bullet.test(line)) return readList(lines, at, bullet);
	if (numbered.test(line)) return readList(lines, at, numbered);
	return readParagraph(lines, at);
}

/** An unclosed fence extends to the end. */
function readCode(lines: string[], at: number): [Block, number] {
	const indent = /^\s*/.exec(lines[at] ?? "")?.[0] ?? "";
	const code: string[] = [];
	let next = at + 1;
	for (; next < lines.length && !fence.test(lines[next] ?? ""); next++) {
		const line = lines[next] ?? "";
		code.push(line.startsWith(indent) ? line.slice(indent.length) : line);
	}
	return [{ kind: "code", text: code.join("\n") }, next + 1];
}

function isTable(lines: string[], at: number): boolean {
	const next = lines[at + 1] ?? "";
	return (lines[at] ?? "").includes("|") && next.includes("|") && divider.test(next);
}

function readTable(lines: string[], at: number): [Block, number] {
	const head = cells(lines[at] ?? "");
	const rows: Inline[][][] = [];
	let next = at + 2;
	for (; next < lines.length && (lines[next] ?? "").includes("|"); next++) {
		const row = cells(lines[next] ?? "");
		rows.push(head.map((_, column) => row[column] ?? []));
	}
	return [{ kind: "table", head, rows }, next];
}

/** cells splits a row at its bars, except inside code. */
function cells(line: string): Inline[][] {
	const row = line.trim().replace(/^\|/, "").replace(/\|$/, "");
	const parts = row.match(/(?:`[^`]*`|\\\||[^|])+|(?<=\|)(?=\|)/g) ?? [];
	return parts.map((part) => inline(part.replaceAll("\\|", "|").trim()));
}

/** Continuation lines belong to the item above them. */
function readList(lines: string[], at: number, marker: RegExp): [Block, number] {
	const items: string[] = [];
	let next = at;
	for (; next < lines.length; next++) {
		const line = lines[next] ?? "";
		const item = marker.exec(line)?.[1];
		if (item !== undefined) items.push(item);
		else if (line.trim() !== "" && !startsBlock(lines, next)) items[items.length - 1] += ` ${line.trim()}`;
		else break;
	}
	return [{ kind: "list", ordered: marker === numbered, items: items.map(inline) }, next];
}

function readParagraph(lines: string[], at: number): [Block, number] {
	const text: string[] = [];
	let next = at;
	for (; next < lines.length; next++) {
		const line = lines[next] ?? "";
		if (line.trim() === "" || (next > at && startsBlock(lines, next))) break;
		text.push(line.trim());
	}
	return [{ kind: "paragraph", content: inline(text.join(" ")) }, next];
}

function startsBlock(lines: string[], at: number): boolean {
	const line = lines[at] ?? "";
	return fence.test(line) || heading.test(line) || bullet.test(line) || numbered.test(line) || isTable(lines, at);
}

const pieces = /(`+)(.+?)\1(?!`)|\*\*(.+?)\*\*|\[([^\]]+)\]\(([^()\s]+)\)/g;

/** inline parses code, bold text and links. Bold text and link labels are plain text. */
export function inline(text: string): Inline[] {
	const out: Inline[] = [];
	let at = 0;
	for (const found of text.matchAll(pieces)) {
		if (found.index > at) out.push({ kind: "text", text: text.slice(at, found.index) });
		const [whole, , code, strong, label, href] = found;
		if (code !== undefined) out.push({ kind: "code", text: code });
		else if (strong !== undefined) out.push({ kind: "strong", text: strong.replaceAll("`", "") });
		else out.push(link(label ?? "", href ?? ""));
		at = found.index + whole.length;
	}
	if (at < text.length) out.push({ kind: "text", text: text.slice(at) });
	return out;
}

/** Only web URLs become links; anchors inside the document have no target here. */
function link(text: string, href: string): Inline {
	return /^https?:\/\//i.test(href) ? { kind: "link", text, href } : { kind: "text", text };
}
