import { isMap, isScalar, type Node, type Scalar } from "yaml";
import { equal, isObject } from "../model/json";
import type { Json, JsonObject } from "../model/types";
import { type Block, extents, isAbsent, isCollection } from "./chunk";
import { match, mergeKeys } from "./match";
import { flow, flowPair, type Kind, kindOf, ordered } from "./print";
import { keyOf } from "./refuse";
import { doubleQuoted, isLiteral, isPlain, oneLine, scalarLine } from "./scalar";

/** A scalar in the style of the one it replaces; undefined if it has to be written in lines. */
export function restyle(node: Scalar, value: Json, inFlow: boolean): string | undefined {
	if (typeof value !== "string") return scalarLine(value, inFlow);
	if (!inFlow && (node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED")) return undefined;
	if (!inFlow && value.includes("\n") && isLiteral(value)) return undefined;
	if (node.type === "QUOTE_DOUBLE") return doubleQuoted(value);
	const line = oneLine(value, inFlow);
	if (node.type === "QUOTE_SINGLE" && !line.startsWith('"')) return `'${value.replaceAll("'", "''")}'`;
	return !inFlow && !isPlain(value) && isLiteral(value) ? undefined : line;
}

/** A collection in brackets with another value; what did not change keeps its bytes. */
export function weaveFlow(source: string, node: Block, before: Json, after: Json, kind: Kind): string {
	const spans = extents(node);
	const [start, end] = [node.range?.[0] ?? 0, node.range?.[1] ?? 0];
	const parts = isMap(node)
		? mapParts(source, node, before as JsonObject, after as JsonObject, kind)
		: listParts(source, node, before as readonly Json[], after as readonly Json[], kind);
	if (parts.length === 0 || spans.length === 0) return flow(after, kind);
	const same = parts.length === spans.length && parts.every((part, i) => part.index === i);
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

/** What stands between two entries, if it is nothing but a comma and blanks. */
function separator(source: string, spans: readonly { from: number; end: number }[]): string {
	const own = spans.length > 1 ? source.slice(spans[0]?.end, spans[1]?.from) : "";
	return /^\s*,\s+$/.test(own) ? own : ", ";
}

function mapParts(source: string, node: Block, before: JsonObject, after: JsonObject, kind: Kind): Part[] {
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
		const text = weaveValue(source, own, before[key] as Json, value, kindOf(kind, key));
		return { index, text: isAbsent(own) ? source.slice(span.from, span.end) : source.slice(span.from, from) + text };
	});
}

function listParts(source: string, node: Block, before: readonly Json[], after: readonly Json[], kind: Kind): Part[] {
	const items = node.items as Node[];
	return match(before, after).map((index, i) => {
		const value = after[i] as Json;
		const own = items[index];
		if (!own) return { index, text: flow(value, kind) };
		return { index, text: weaveValue(source, own, before[index] as Json, value, kind) };
	});
}

function weaveValue(source: string, node: Node | null, before: Json, after: Json, kind: Kind): string {
	if (equal(before, after)) return source.slice(node?.range?.[0], node?.range?.[1]);
	const alike = Array.isArray(before) === Array.isArray(after) && isObject(before) === isObject(after);
	if (isCollection(node) && alike) return weaveFlow(source, node, before, after, kind);
	if (isScalar(node) && !isObject(after) && !Array.isArray(after)) return restyle(node, after, true) as string;
	return flow(after, kind);
}
