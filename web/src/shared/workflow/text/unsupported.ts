import { type Document, isAlias, isMap, isPair, isScalar, isSeq, type Node, type Pair, type Scalar, visit } from "yaml";
import { pointer } from "../model/pointer";

// YAML features that workflow files do not support.

export interface Unsupported {
	readonly offset: number;
	readonly message: string;
	readonly pointer: string;
}

const maxDepth = 64;
const maxNumber = 100;
const maxKey = 1024;

const loneSurrogate = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** The first unsupported part of the document. */
export function firstUnsupported(document: Document, text: string): Unsupported | undefined {
	let found: Unsupported | undefined;
	visit(document, (key, part, path) => {
		const whole = [...path, part];
		const message = isPair(part)
			? pairProblem(part, path.at(-1), text)
			: isNode(part)
				? nodeProblem(key, part, whole, text)
				: undefined;
		if (message === undefined) return undefined;
		found = { offset: startOf(part, text), message, pointer: pathPointer(whole) };
		return visit.BREAK;
	});
	return found;
}

function isNode(part: unknown): part is Node {
	return isScalar(part) || isMap(part) || isSeq(part) || isAlias(part);
}

/** The start of a part, including its anchor or tag. */
function startOf(part: unknown, text: string): number {
	const offset = offsetOf(part);
	if (!isNode(part) || !("anchor" in part) || !(part.anchor || part.tag)) return offset;
	const mark = text.lastIndexOf(part.anchor ? `&${part.anchor}` : "!", offset);
	return mark < 0 ? offset : mark;
}

function offsetOf(part: unknown): number {
	if (isPair(part)) return offsetOf(part.key);
	return isNode(part) ? (part.range?.[0] ?? 0) : 0;
}

function nodeProblem(key: unknown, node: Node, path: readonly unknown[], text: string): string | undefined {
	if (isAlias(node)) return "aliases are not allowed; text that starts with * has to be in quotes";
	if ("anchor" in node && node.anchor) return "anchors are not allowed; text that starts with & has to be in quotes";
	if (node.tag) return "tags are not allowed; text that starts with ! has to be in quotes";
	if (isMap(node) && !node.srcToken && isSeq(path.at(-2))) return "a pair inside of [ ] needs { } around it";
	if (path.filter((part) => isMap(part) || isSeq(part)).length > maxDepth)
		return `nesting is deeper than ${maxDepth} levels`;
	if (key === "key") return keyProblem(node, text);
	return isScalar(node) ? scalarProblem(node) : undefined;
}

function scalarProblem(node: Scalar): string | undefined {
	const { value, source = "" } = node;
	if (typeof value === "number") {
		if (source.length > maxNumber) return `number is too long (more than ${maxNumber} characters)`;
		if (!Number.isFinite(value) && /^[-+]?\.(?:inf|nan)$/i.test(source))
			return `${source} is no number that can be stored`;
	}
	if (typeof value !== "string") return undefined;
	if (value.includes("\0")) return "contains a NUL character";
	return loneSurrogate.test(value) ? "the escape is half of a surrogate pair" : undefined;
}

function keyProblem(node: Node, text: string): string | undefined {
	if (!isScalar(node)) return "a key has to be text";
	if (typeof node.value !== "string") return `a key has to be text: put ${node.source ?? "it"} in quotes`;
	if (node.value === "<<" && node.type === "PLAIN") return "merge keys are not allowed";
	const [from, to] = node.range ?? [0, 0];
	if (text.slice(from, to).includes("\n")) return "a key has to stand on one line";
	if (new TextEncoder().encode(node.value).length > maxKey) return `a key is longer than ${maxKey} bytes`;
	return scalarProblem(node);
}

/** Checks the syntax of a key and its value. */
function pairProblem(pair: Pair, around: unknown, text: string): string | undefined {
	const token = pair.srcToken;
	if (!token) return undefined;
	if (token.start.some((part) => part.type === "explicit-key-ind")) {
		return "complex keys are not allowed; text that starts with ? has to be in quotes";
	}
	const colon = token.sep?.find((part) => part.type === "map-value-ind");
	if (!colon) return "expected a colon and a space after the key";
	const quoted = isScalar(pair.key) && (pair.key.type === "QUOTE_DOUBLE" || pair.key.type === "QUOTE_SINGLE");
	const tight = isMap(around) && around.flow && !quoted && /\S/.test(text[colon.offset + 1] ?? " ");
	return tight ? "expected a colon and a space after the key" : undefined;
}

/** The pointer for a path of nodes. */
export function pathPointer(path: readonly unknown[]): string {
	const members: (string | number)[] = [];
	for (const [i, step] of path.entries()) {
		const next = path[i + 1];
		if (isPair(step)) members.push(keyOf(step));
		else if (isSeq(step) && next !== undefined) members.push(step.items.indexOf(next as Node));
	}
	return pointer(...members);
}

export function keyOf(pair: Pair): string {
	return isScalar(pair.key) ? String(pair.key.value) : String(pair.key);
}
