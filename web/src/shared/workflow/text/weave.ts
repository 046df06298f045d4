import { isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";
import { definedKeys, equal, isObject, omit } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { type Block, type Chunk, colonEnd, contentEnd, cut, isAbsent, isCollection, lineEnd, lineStart } from "./chunk";
import { match, mergeKeys } from "./match";
import { type Kind, kindOf, ordered, after as printAfter, item as printItem, pair as printPair } from "./print";
import { keyOf } from "./unsupported";
import { restyle, type Written, weaveFlow } from "./weave-flow";

const longestFlow = 120;

/** A step of the text that may appear in another list. */
interface Pooled {
	readonly list: YAMLSeq;
	readonly index: number;
	readonly value: JsonObject;
	readonly chunk: Chunk;
	readonly column: number;
	/** The comments between the key of the list and its first entry. */
	readonly head: string;
	/** The id of the block that contains the list, "" at the top level. */
	readonly block: string;
}

/** An entry of the output, without the indentation of its first line. */
interface Piece {
	readonly lead: string;
	readonly body: string;
	readonly first: boolean;
	readonly fresh: boolean;
}

/** Rewrites a text in block style for a new value. Parts whose value is unchanged are copied byte for byte. */
export class Weaver {
	private readonly pool = new Map<string, Pooled>();

	private readonly source: string;

	constructor(private readonly text: Written) {
		this.source = text.source;
	}

	/** The document, starting at its first key. */
	weave(root: YAMLMap, before: JsonObject, after: JsonObject): string {
		this.fill(root, before, this.source.length, "");
		return this.block(root, before, after, "workflow", this.source.length);
	}

	/** The id that a step has in the text. */
	private formerly(step: { readonly id?: Json }): string {
		return this.text.ids("step").formerly(String(step.id));
	}

	private fill(node: YAMLMap, value: JsonObject, end: number, block: string): void {
		const chunks = cut(this.source, node, end);
		const at = node.items.findIndex((pair) => keyOf(pair) === "steps");
		const list = node.items[at]?.value;
		if (!isSeq(list) || list.flow || !Array.isArray(value.steps)) return;
		const inner = cut(this.source, list, chunks.items[at]?.end ?? end);
		const first = inner.items[0]?.from ?? end;
		const head = this.source.slice(
			lineEnd(this.source, colonEnd(node.items[at] as Pair)),
			lineStart(this.source, first),
		);
		for (const [index, step] of (value.steps as readonly JsonObject[]).entries()) {
			const chunk = inner.items[index] as Chunk;
			this.pool.set(String(step.id), { list, index, value: step, chunk, column: inner.column, head, block });
			const own = list.items[index];
			if (isMap(own) && !own.flow) this.fill(own, step, chunk.end, String(step.id));
		}
	}

	private block(node: Block, before: Json, after: Json, kind: Kind, end: number): string {
		const chunks = cut(this.source, node, end);
		const pieces = isMap(node)
			? this.members(node, before as JsonObject, after as JsonObject, kind, chunks.items, chunks.column)
			: this.entries(node, before as readonly Json[], after as readonly Json[], kind, chunks.items, chunks.column);
		const spaced = isSeq(node) && chunks.items.slice(1).some((chunk) => /^[ \t]*\r?\n/.test(this.lead(chunk)));
		return join(pieces, chunks.column, spaced) + this.source.slice(chunks.tail, end);
	}

	private lead(chunk: Chunk): string {
		return this.source.slice(chunk.lead, chunk.line);
	}

	private members(
		node: YAMLMap,
		before: JsonObject,
		after: JsonObject,
		kind: Kind,
		chunks: readonly Chunk[],
		column: number,
	): Piece[] {
		const keys = node.items.map(keyOf);
		return mergeKeys(keys, ordered(after, kind)).map((key) => {
			const i = keys.indexOf(key);
			const value = after[key] as Json;
			const chunk = chunks[i];
			const own = node.items[i];
			if (!chunk || !own) {
				const body = kindOf(kind, key) === "step" ? `${key}:${this.after(value, column, "step")}` : undefined;
				return { lead: "", body: body ?? printPair(key, value, column, kind), first: false, fresh: true };
			}
			const body = this.member(own, before[key] as Json, value, kindOf(kind, key), column, chunk);
			return { lead: this.lead(chunk), body, first: i === 0, fresh: false };
		});
	}

	private entries(
		node: YAMLSeq,
		before: readonly Json[],
		after: readonly Json[],
		kind: Kind,
		chunks: readonly Chunk[],
		column: number,
	): Piece[] {
		return match(before, after, this.text.ids(kind)).map((index, i) => {
			const chunk = chunks[index];
			if (!chunk) return this.fresh(after[i] as Json, column, kind);
			const body = this.entry(node, index, before[index] as Json, after[i] as Json, kind, column, chunk);
			return { lead: this.lead(chunk), body, first: index === 0, fresh: false };
		});
	}

	/** An entry that is new in its list: moved from another list, or newly written. */
	private fresh(value: Json, column: number, kind: Kind): Piece {
		const known = kind === "step" && isObject(value) ? this.pool.get(this.formerly(value)) : undefined;
		if (known) {
			const { list, index, chunk } = known;
			const orphan = index === 0 && known.block !== "" && !this.text.ids("step").kept.has(known.block);
			const lead = orphan ? known.head : this.lead(chunk);
			const by = column - known.column;
			const body = reindent(ended(this.entry(list, index, known.value, value, kind, known.column, chunk)), by);
			return { lead: reindent(`\n${trimBlank(lead)}`, by).slice(1), body, first: false, fresh: true };
		}
		return { lead: "", body: this.printed(value, column, kind), first: false, fresh: true };
	}

	/** A new step; steps that are moved into it keep their bytes. */
	private printed(value: Json, column: number, kind: Kind): string {
		const inner = kind === "step" && isObject(value) ? value.steps : undefined;
		if (!isObject(value) || !Array.isArray(inner) || inner.length === 0) return printItem(value, column, kind);
		return `${printItem(omit(value, "steps"), column, kind)}${" ".repeat(column + 2)}steps:${this.after(inner, column + 2, kind)}`;
	}

	/** What follows a colon; steps that are moved into a new list keep their bytes. */
	private after(value: Json, column: number, kind: Kind): string {
		if (kind !== "step" || !Array.isArray(value) || value.length === 0) return printAfter(value, column, kind);
		const indent = " ".repeat(column + 2);
		const pieces = value.map((step: Json) => this.fresh(step, column + 2, kind));
		return `\n${pieces.map((piece) => piece.lead + indent + piece.body).join("")}`;
	}

	private member(pair: Pair, before: Json, after: Json, kind: Kind, column: number, chunk: Chunk): string {
		const value = pair.value as Node | null;
		const kept = this.within(value, before, after, kind, chunk);
		if (kept !== undefined) return kept;
		const rest = this.rest(value, colonEnd(pair), chunk);
		return this.source.slice(chunk.from, colonEnd(pair)) + commented(this.after(after, column, kind), rest);
	}

	private entry(
		node: YAMLSeq,
		index: number,
		before: Json,
		after: Json,
		kind: Kind,
		column: number,
		chunk: Chunk,
	): string {
		const value = node.items[index] as Node | null;
		const kept = this.within(value, before, after, kind, chunk);
		if (kept !== undefined) return kept;
		return commented(this.printed(after, column, kind), this.rest(value, chunk.from + 1, chunk));
	}

	/** The bytes of a chunk with its value replaced; undefined if it must be rewritten. */
	private within(value: Node | null, before: Json, after: Json, kind: Kind, chunk: Chunk): string | undefined {
		if (equal(before, after)) return this.source.slice(chunk.from, chunk.end);
		if (!value || isAbsent(value)) return undefined;
		const [from, to] = [value.range?.[0] ?? 0, value.range?.[1] ?? 0];
		const head = this.source.slice(chunk.from, from);
		if (isCollection(value)) {
			if (!sameShape(value, after)) return undefined;
			if (!value.flow) return head + this.block(value, before, after, kind, chunk.end);
			const text = weaveFlow(this.text, value, before, after, kind);
			// Multi-line flow collections may contain comments and are long anyway.
			const lines = text.includes("\n");
			return !lines && text.length > Math.max(longestFlow, to - from)
				? undefined
				: head + text + this.source.slice(to, chunk.end);
		}
		const text =
			isScalar(value) && !isObject(after) && !Array.isArray(after) ? restyle(value, after, false) : undefined;
		if (text === undefined) return undefined;
		const broken = this.source[to - 1] === "\n" ? "\n" : "";
		return head + text + broken + this.source.slice(to, chunk.end);
	}

	/** What follows a rewritten value: the comment on its line, and the lines after it. */
	private rest(value: Node | null, absent: number, chunk: Chunk): { comment: string; lines: string } {
		const end = contentEnd(value, absent);
		const next = Math.min(lineEnd(this.source, end), chunk.end);
		const inLines = isCollection(value) && !value.flow;
		const line = (
			inLines ? this.source.slice(absent, lineEnd(this.source, absent)) : this.source.slice(end, next)
		).trimEnd();
		return { comment: /^[ \t]+#/.test(line) ? line : "", lines: this.source.slice(next, chunk.end) };
	}
}

function sameShape(node: Block, value: Json): boolean {
	if (node.items.length === 0) return false;
	return isMap(node) ? isObject(value) && definedKeys(value).length > 0 : Array.isArray(value) && value.length > 0;
}

/** Adds a comment to the end of the first line. */
function commented(text: string, rest: { comment: string; lines: string }): string {
	const end = text.indexOf("\n");
	return text.slice(0, end) + rest.comment + text.slice(end) + rest.lines;
}

function ended(text: string): string {
	return text.endsWith("\n") ? text : `${text}\n`;
}

/** Leading blank lines are not moved. */
function trimBlank(text: string): string {
	return text.replace(/^(?:[ \t]*\r?\n)+/, "");
}

function reindent(text: string, by: number): string {
	if (by === 0) return text;
	return text.replace(/\n( *)(?=[^\s])/g, (_, spaces: string) => `\n${" ".repeat(Math.max(0, spaces.length + by))}`);
}

/** Joins pieces. If the entries of a list are separated by blank lines, new ones are too. */
function join(pieces: readonly Piece[], column: number, spaced: boolean): string {
	const indent = " ".repeat(column);
	let out = "";
	for (const [i, piece] of pieces.entries()) {
		if (i === 0) {
			const lead = trimBlank(piece.lead);
			out += lead === "" ? piece.body : lead.trimStart() + indent + piece.body;
			continue;
		}
		const apart = spaced && (piece.fresh || piece.first) ? "\n" : "";
		out = ended(out) + apart + piece.lead + indent + piece.body;
	}
	return out;
}
