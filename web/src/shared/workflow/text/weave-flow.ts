import { isMap, isScalar, type Node, type Scalar } from "yaml";
import { equal, isObject } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { type Block, extents, isAbsent, isCollection } from "./chunk";
import { type Ids, match, mergeKeys } from "./match";
import { flow, flowPair, type Kind, kindOf, ordered } from "./print";
import { doubleQuoted, isLiteral, isPlain, oneLine, scalarLine } from "./scalar";
import { keyOf } from "./unsupported";

/** A scalar in the style of the one it replaces; undefined if it needs a block scalar. */
export function restyle(node: Scalar, value: Json, inFlow: boolean): string | undefined {
	if (typeof value !== "string") return scalarLine(value, inFlow);
	if (!inFlow && (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED")) return undefined;
	if (!inFlow && value.includes("\n") && isLiteral(value)) return undefined;
	if (node.type === "QUOTE_DOUBLE") return doubleQuoted(value);
	const line = oneLine(value, inFlow);
	if (node.type === "QUOTE_SINGLE" && !line.startsWith('"')) return `'${value.replaceAll("'", "''")}'`;
	return !inFlow && !isPlain(value) && isLiteral(value) ? undefined : line;
}

/** A text and what is known about its ids. */
export interface Written {
	readonly source: string;
	readonly ids: (kind: Kind) => Ids;
}

/** Rewrites a flow collection; unchanged parts keep their bytes. */
export function weaveFlow(text: Written, node: Block, before: Json, after: Json, kind: Kind): string {
	const { source } = text;
	const spans = extents(node);
	const [start, end] = [node.range?.[0] ?? 0, node.range?.[1] ?? 0];
	const parts = isMap(node)
		? mapParts(text, node, before as JsonObject, after as JsonObject, kind)
		: listParts(text, node, before as readonly Json[], after as readonly Json[], kind);
	if (parts.length === 0 || spans.length === 0) return flow(after, kind);
	const same = parts.length === spans.length && parts.every((part, i) => part.index === i);
	if (!same && source.slice(start, end).includes("\n")) return inLines(source, start, end, spans, parts);
	let out = source.slice(start, spans[0]?.from);
	for (const [i, part] of parts.entries()) {
		if (i > 0) out += same ? source.slice(spans[i - 1]?.end, spans[i]?.from) : separator(source, spans);
		out += part.text;
	}
	return out + source.slice(spans.at(-1)?.end, end);
}

interface Part {
	readonly index: number;
	readonly text: string;
}

type Span = { readonly from: number; readonly end: number };

/**
 * A flow collection over several lines. Each entry keeps the rest of its line and the
 * lines above it, so that comments stay with their entry.
 */
function inLines(source: string, start: number, end: number, spans: readonly Span[], parts: readonly Part[]): string {
	const gaps = spans.map((span, i) => halves(source.slice(span.end, spans[i + 1]?.from ?? end)));
	const open = source.slice(start, spans[0]?.from);
	const indent = /[ \t]*$/.exec(gaps.length > 1 ? (gaps[0]?.below ?? "") : open)?.[0] ?? "";
	const broken = gaps.some((gap) => gap.beside.endsWith("\n"));
	const trailing = /^[ \t]*,/.test(gaps.at(-1)?.beside ?? "");
	let out = open;
	for (const [i, part] of parts.entries()) {
		const above = part.index > 0 ? (gaps[part.index - 1]?.below ?? "") : indent;
		out += i > 0 ? above : above.trim() === "" ? "" : above.trimStart();
		const beside = gaps[part.index]?.beside ?? (broken ? "\n" : "");
		const bare = beside.replace(/^([ \t]*),/, "$1");
		out += part.text + (i < parts.length - 1 || trailing ? `,${bare || " "}` : bare);
	}
	return out + (gaps.at(-1)?.below ?? "");
}

/** What follows an entry: the rest of its line, and the lines after it. */
function halves(gap: string): { beside: string; below: string } {
	const at = gap.indexOf("\n") + 1;
	return at === 0 && /[\]}]$/.test(gap)
		? { beside: "", below: gap }
		: { beside: gap.slice(0, at), below: gap.slice(at) };
}

/** The separator between two entries, if it is only a comma and whitespace. */
function separator(source: string, spans: readonly Span[]): string {
	const own = spans.length > 1 ? source.slice(spans[0]?.end, spans[1]?.from) : "";
	return /^\s*,\s+$/.test(own) ? own : ", ";
}

function mapParts(text: Written, node: Block, before: JsonObject, after: JsonObject, kind: Kind): Part[] {
	const pairs = isMap(node) ? node.items : [];
	const keys = pairs.map(keyOf);
	const spans = extents(node);
	return mergeKeys(keys, ordered(after, kind)).map((key) => {
		const index = keys.indexOf(key);
		const value = after[key] as Json;
		const pair = pairs[index];
		const span = spans[index];
		if (!pair || !span) return { index, text: flowPair(key, value, kind) };
		const own = pair.value as Node | null;
		const from = own?.range?.[0] ?? 0;
		if (isAbsent(own) && !equal(before[key], value)) return { index, text: flowPair(key, value, kind) };
		const woven = weaveValue(text, own, before[key] as Json, value, kindOf(kind, key));
		const { source } = text;
		return { index, text: isAbsent(own) ? source.slice(span.from, span.end) : source.slice(span.from, from) + woven };
	});
}

function listParts(text: Written, node: Block, before: readonly Json[], after: readonly Json[], kind: Kind): Part[] {
	const items = node.items as Node[];
	return match(before, after, text.ids(kind)).map((index, i) => {
		const value = after[i] as Json;
		const own = items[index];
		if (!own) return { index, text: flow(value, kind) };
		return { index, text: weaveValue(text, own, before[index] as Json, value, kind) };
	});
}

function weaveValue(text: Written, node: Node | null, before: Json, after: Json, kind: Kind): string {
	if (equal(before, after)) return text.source.slice(node?.range?.[0], node?.range?.[1]);
	const alike = Array.isArray(before) === Array.isArray(after) && isObject(before) === isObject(after);
	if (isCollection(node) && alike) return weaveFlow(text, node, before, after, kind);
	if (isScalar(node) && !isObject(after) && !Array.isArray(after)) return restyle(node, after, true) as string;
	return flow(after, kind);
}
