import type { Form } from "../model/expressions";
import type { Json } from "../model/types";
import { type Chain, chainTo, isDot } from "./chain";
import { keywords, lex } from "./lex";
import type { Scope, Shape } from "./scope";
import { membersOf, shapeAt, typeOf } from "./shape";
import { bareSpan, type Span, spans } from "./template";
import type { Token } from "./token";

export interface Completion {
	readonly label: string;
	readonly kind: "name" | "member" | "function";
	/** Replaces the text between from and to. */
	readonly insert: string;
	readonly from: number;
	readonly to: number;
	readonly type?: string;
	readonly value?: Json;
	readonly detail?: string;
	/** What a function does. */
	readonly doc?: string;
}

/** The expression at a position; undefined outside of expressions. */
export function spanAt(text: string, position: number, form: Form): Span | undefined {
	if (form === "bare") {
		const span = bareSpan(text);
		return position >= span.from && position <= span.to ? span : undefined;
	}
	return spans(text).find((span) => position >= span.from && position <= span.to);
}

/** The completions at a position of a text. */
export function complete(text: string, position: number, scope: Scope, form: Form): Completion[] {
	const span = spanAt(text, position, form);
	if (!span) return [];
	const all = lex(text, span.from, span.to);
	if (all.some((token) => token.kind === "comment" && token.from < position && position <= token.to)) return [];
	const tokens = all.filter((token) => token.kind !== "comment");
	const at = tokens.findIndex((token) => token.from < position && position <= token.to);
	const here = tokens[at];
	if (here && isWord(here)) {
		return isDot(tokens[at - 1])
			? membersAfter(tokens, at - 1, scope, here, text.slice(here.from, position))
			: roots(scope, here, text.slice(here.from, position));
	}
	const quoted = here && /^["']/.test(text.slice(here.from, here.to)) && position > here.from;
	if (quoted && !(here.kind === "string" && position === here.to)) {
		return tokens[at - 1]?.value === "[" ? inBrackets(tokens, at, scope, text, position) : [];
	}
	const before = tokens.findLastIndex((token) => token.to <= position);
	const empty = { from: position, to: position };
	if (isDot(tokens[before])) return membersAfter(tokens, before, scope, empty, "");
	return isValueEnd(tokens[before]) ? [] : roots(scope, empty, "");
}

function isWord(token: Token): boolean {
	return token.kind === "name" || token.kind === "keyword";
}

/** Whether a token ends a value, so that only an operator can follow. */
function isValueEnd(token: Token | undefined): boolean {
	if (!token) return false;
	return ["name", "number", "string", "error"].includes(token.kind) || [")", "]", "}"].includes(token.value);
}

type Place = Pick<Token, "from" | "to">;

function roots(scope: Scope, place: Place, typed: string): Completion[] {
	const names = Object.entries(scope.names).map(([label, shape]) => item(label, "name", label, place, shape));
	const functions = scope.functions.map((fn) => ({
		...item(fn.name, "function", `${fn.name}(`, place, {}),
		detail: fn.signature.slice(fn.name.length),
		doc: fn.doc,
	}));
	return matching([...names, ...functions], typed);
}

function membersAfter(tokens: readonly Token[], dot: number, scope: Scope, place: Place, typed: string): Completion[] {
	const shape = shapeOf(scope, chainTo(tokens, dot - 1));
	const bracket = { from: (tokens[dot] as Token).from, to: place.to };
	const items = membersOf(shape).map(([name, inner]) =>
		isName(name)
			? item(name, "member", name, place, inner)
			: item(name, "member", `[${JSON.stringify(name)}]`, bracket, inner),
	);
	return matching(items, typed);
}

function inBrackets(tokens: readonly Token[], at: number, scope: Scope, text: string, position: number): Completion[] {
	const place = tokens[at] as Token;
	const open = isDot(tokens[at - 2]) ? at - 3 : at - 2;
	const shape = shapeOf(scope, chainTo(tokens, open));
	const items = membersOf(shape).map(([name, inner]) => item(name, "member", JSON.stringify(name), place, inner));
	return matching(items, text.slice(place.from + 1, position));
}

function shapeOf(scope: Scope, chain: Chain | undefined): Shape {
	return (chain && shapeAt(scope, chain)) ?? {};
}

function isName(name: string): boolean {
	return /^[\p{L}_$][\p{L}\p{Nd}_$]*$/u.test(name) && !keywords.has(name);
}

function item(label: string, kind: Completion["kind"], insert: string, place: Place, shape: Shape): Completion {
	const type = typeOf(shape);
	return {
		label,
		kind,
		insert,
		from: place.from,
		to: place.to,
		...(type !== undefined && { type }),
		...(shape.value !== undefined && { value: shape.value }),
		...(shape.detail !== undefined && { detail: shape.detail }),
	};
}

/** Prefix matches first, then substring matches. */
function matching(items: readonly Completion[], typed: string): Completion[] {
	const wanted = typed.toLowerCase();
	const begins = items.filter((one) => one.label.toLowerCase().startsWith(wanted));
	const contains = items.filter((one) => !begins.includes(one) && one.label.toLowerCase().includes(wanted));
	return [...begins, ...contains];
}

/** The chain at a position, to look up its value; undefined if there is none. */
export function chainAt(text: string, position: number, form: Form): Chain | undefined {
	const span = spanAt(text, position, form);
	if (!span) return undefined;
	const tokens = lex(text, span.from, span.to).filter((token) => token.kind !== "comment");
	const at = tokens.findIndex((token) => token.from <= position && position < token.to);
	const here = tokens[at];
	return here && (isWord(here) || here.value === "]") ? chainTo(tokens, at) : undefined;
}
