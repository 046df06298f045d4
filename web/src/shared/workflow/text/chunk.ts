import { isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

// Splits a mapping or list in block style into chunks, one per entry: the comments and
// blank lines before it, and the entry itself.

export interface Chunk {
	/** The start of the comments before the entry; equal to `line` if there are none. */
	readonly lead: number;
	/** The start of its line. */
	readonly line: number;
	/** The position of its key or dash. */
	readonly from: number;
	readonly end: number;
}

export interface Chunks {
	readonly column: number;
	readonly items: readonly Chunk[];
	/** The start of the trailing part that belongs to no entry. */
	readonly tail: number;
}

export type Block = YAMLMap | YAMLSeq;

export function isCollection(node: unknown): node is Block {
	return isMap(node) || isSeq(node);
}

/** Whether a value is omitted. */
export function isAbsent(node: unknown): boolean {
	return !node || (isScalar(node) && node.value === null && (node.range?.[0] ?? 0) === (node.range?.[1] ?? 0));
}

export function keyStart(pair: Pair): number {
	return (pair.key as Node).range?.[0] ?? 0;
}

export function colonEnd(pair: Pair): number {
	const colon = pair.srcToken?.sep?.find((token) => token.type === "map-value-ind");
	return colon ? colon.offset + 1 : ((pair.key as Node).range?.[1] ?? 0);
}

/** The positions of the dashes of a list in block style. */
export function dashes(node: YAMLSeq): number[] {
	const token = node.srcToken;
	if (token?.type !== "block-seq") return [];
	return token.items.flatMap((item) =>
		item.start.filter((part) => part.type === "seq-item-ind").map((part) => part.offset),
	);
}

/** The start and end of each entry, without what follows on the same line. */
export function extents(node: Block): { from: number; end: number }[] {
	if (isMap(node)) {
		return node.items.map((pair) => ({
			from: keyStart(pair),
			end: contentEnd(pair.value as Node | null, colonEnd(pair)),
		}));
	}
	const marks = node.flow ? [] : dashes(node);
	return (node.items as Node[]).map((item, i) => {
		const from = marks[i] ?? item.range?.[0] ?? 0;
		return { from, end: contentEnd(item, from + 1) };
	});
}

/** The end of a value, without comments; block scalars include their last line break. */
export function contentEnd(node: Node | null, absent: number): number {
	if (isAbsent(node)) return absent;
	if (isCollection(node) && !node.flow) return extents(node).at(-1)?.end ?? absent;
	return node?.range?.[1] ?? absent;
}

/** The start of the line after an offset; an offset after a line break is one already. */
export function lineEnd(source: string, offset: number): number {
	if (offset > 0 && source[offset - 1] === "\n") return offset;
	const at = source.indexOf("\n", offset);
	return at < 0 ? source.length : at + 1;
}

export function lineStart(source: string, offset: number): number {
	return source.lastIndexOf("\n", offset - 1) + 1;
}

/** Splits a collection in block style that ends at an offset. */
export function cut(source: string, node: Block, end: number): Chunks {
	const spans = extents(node);
	const first = spans[0]?.from ?? end;
	const column = first - lineStart(source, first);
	const marks = spans.map(({ from }, i) => {
		const line = i === 0 ? from : lineStart(source, from);
		const floor = i === 0 ? from : lineEnd(source, spans[i - 1]?.end ?? 0);
		return { from, line, lead: leadStart(source, floor, line, column) };
	});
	const tail = tailStart(source, lineEnd(source, spans.at(-1)?.end ?? end), end, column);
	return { column, items: marks.map((mark, i) => ({ ...mark, end: marks[i + 1]?.lead ?? tail })), tail };
}

function linesOf(source: string, from: number, to: number): { from: number; indent: number; blank: boolean }[] {
	const out: { from: number; indent: number; blank: boolean }[] = [];
	for (let at = from; at < to; at = lineEnd(source, at + 1)) {
		const text = source.slice(at, Math.min(to, lineEnd(source, at + 1)));
		out.push({ from: at, indent: text.length - text.trimStart().length, blank: text.trim() === "" });
	}
	return out;
}

/** Comments that are indented further than an entry belong to the previous one. */
function leadStart(source: string, floor: number, line: number, column: number): number {
	let start = line;
	for (const gap of linesOf(source, floor, line).reverse()) {
		if (!gap.blank && gap.indent > column) break;
		start = gap.from;
	}
	return start;
}

/** Comments that are indented less than the entries, and trailing blank lines, belong to none of them. */
function tailStart(source: string, floor: number, end: number, column: number): number {
	let start = floor;
	for (const gap of linesOf(source, floor, end)) {
		if (gap.blank) continue;
		if (gap.indent < column) break;
		start = lineEnd(source, gap.from + 1);
	}
	return Math.min(start, end);
}
