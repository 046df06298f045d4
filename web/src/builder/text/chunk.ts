import { isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

// The bytes of a mapping or a list in block style, cut into one stretch for each
// of its entries: the comments and empty lines before it, and the entry itself.

export interface Chunk {
	/** Where the comments before the entry begin; the same as line if there are none. */
	readonly lead: number;
	/** Where its line begins. */
	readonly line: number;
	/** Where its key or dash stands. */
	readonly from: number;
	readonly end: number;
}

export interface Chunks {
	readonly column: number;
	readonly items: readonly Chunk[];
	/** Where what belongs to no entry begins, at the end. */
	readonly tail: number;
}

export type Block = YAMLMap | YAMLSeq;

export function isCollection(node: unknown): node is Block {
	return isMap(node) || isSeq(node);
}

/** Whether nothing is written for a value. */
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

/** Where the dashes of a list in block style stand. */
export function dashes(node: YAMLSeq): number[] {
	const token = node.srcToken;
	if (token?.type !== "block-seq") return [];
	return token.items.flatMap((item) =>
		item.start.filter((part) => part.type === "seq-item-ind").map((part) => part.offset),
	);
}

/** Where an entry begins, and where it ends without what follows it on its line. */
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

/** Where a value ends: without comments, and for text in lines with its last line break. */
export function contentEnd(node: Node | null, absent: number): number {
	if (isAbsent(node)) return absent;
	if (isCollection(node) && !node.flow) return extents(node).at(-1)?.end ?? absent;
	return node?.range?.[1] ?? absent;
}

/** Where the line after an offset begins; an offset behind a line break is there already. */
export function lineEnd(source: string, offset: number): number {
	if (offset > 0 && source[offset - 1] === "\n") return offset;
	const at = source.indexOf("\n", offset);
	return at < 0 ? source.length : at + 1;
}

export function lineStart(source: string, offset: number): number {
	return source.lastIndexOf("\n", offset - 1) + 1;
}

/** Cuts a collection in block style whose bytes end at an offset. */
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

/** Comments that stand further in than an entry belong to what is before it. */
function leadStart(source: string, floor: number, line: number, column: number): number {
	let start = line;
	for (const gap of linesOf(source, floor, line).reverse()) {
		if (!gap.blank && gap.indent > column) break;
		start = gap.from;
	}
	return start;
}

/** Comments that stand further out than the entries, and empty lines at the end, belong to none of them. */
function tailStart(source: string, floor: number, end: number, column: number): number {
	let start = floor;
	for (const gap of linesOf(source, floor, end)) {
		if (gap.blank) continue;
		if (gap.indent < column) break;
		start = lineEnd(source, gap.from + 1);
	}
	return Math.min(start, end);
}
