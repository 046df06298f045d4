import { isMap, isPair, isScalar, isSeq, type Node, type Pair } from "yaml";
import { members, pointer } from "../model/pointer";
import { keyOf } from "./unsupported";
import type { Parsed } from "./yaml";

export interface Position {
	readonly line: number;
	readonly column: number;
	readonly offset: number;
}

export interface Range {
	readonly from: number;
	readonly to: number;
}

/** The range of the value at a pointer, or of the innermost existing value around it. */
export function rangeAt(parsed: Parsed, at: string): Range {
	let node = parsed.document.contents as unknown as Node | null;
	let range = rangeOf(node, undefined);
	for (const member of members(at)) {
		const found = child(node, member);
		if (found === undefined) break;
		node = isPair(found) ? (found.value as Node | null) : found;
		range = rangeOf(node, isPair(found) ? found : undefined);
	}
	return range;
}

/** The position of the value at a pointer, as reported by the server. */
export function locate(parsed: Parsed, at: string): Position {
	const offset = rangeAt(parsed, at).from;
	return { offset, ...parsed.lines.at(offset) };
}

function child(node: Node | null, member: string): Pair | Node | undefined {
	if (isMap(node)) return node.items.find((pair) => keyOf(pair) === member);
	return isSeq(node) ? (node.items[Number(member)] as Node | undefined) : undefined;
}

/** An omitted value has the position of its key. */
function rangeOf(node: Node | null, pair: Pair | undefined): Range {
	const left = !node?.range || (isScalar(node) && node.value === null && node.source === "");
	const range = left && pair ? (pair.key as Node).range : node?.range;
	return { from: range?.[0] ?? 0, to: range?.[1] ?? 0 };
}

/** The pointer to the innermost value at an offset; on a key, to its value. */
export function pointerAt(parsed: Parsed, offset: number): string {
	const path: (string | number)[] = [];
	let node = parsed.document.contents as unknown as Node | null;
	while (node) {
		const next: { member: string | number; node: Node | null } | undefined = inside(node, offset);
		if (!next) break;
		path.push(next.member);
		node = next.node;
	}
	return pointer(...path);
}

function inside(node: Node, offset: number): { member: string | number; node: Node | null } | undefined {
	if (isMap(node)) {
		const pair = last(node.items, (entry) => (entry.key as Node).range?.[0], offset);
		return pair && { member: keyOf(pair), node: pair.value as Node | null };
	}
	if (!isSeq(node)) return undefined;
	const found = last(node.items as Node[], (entry) => entry.range?.[0], offset);
	return found && { member: node.items.indexOf(found), node: found };
}

/** The last entry that starts at or before an offset. */
function last<T>(items: readonly T[], start: (item: T) => number | undefined, offset: number): T | undefined {
	return items.filter((item) => (start(item) ?? Number.POSITIVE_INFINITY) <= offset).at(-1);
}
