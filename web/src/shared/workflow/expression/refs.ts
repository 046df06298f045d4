import { isDot } from "./chain";
import { lex } from "./lex";
import { bareSpan, type Span, spans } from "./template";
import type { Token } from "./token";

/** A literal reference to a step, secret or variable in an expression. */
export interface Ref {
	readonly root: "steps" | "links" | "secrets" | "vars";
	readonly name: string;
	/** The position of the name, including its quotes. */
	readonly from: number;
	readonly to: number;
	readonly quoted: boolean;
}

const rootNames = new Set(["steps", "links", "secrets", "vars"]);

/** The references in a text with ${{ }} expressions. */
export function templateRefs(text: string): Ref[] {
	return spans(text).flatMap((span) => refsIn(text, span));
}

/** The references in a bare expression. */
export function bareRefs(text: string): Ref[] {
	return refsIn(text, bareSpan(text));
}

function refsIn(text: string, span: Pick<Span, "from" | "to">): Ref[] {
	const tokens = lex(text, span.from, span.to).filter((token) => token.kind !== "comment");
	const hidden = new Set<string>();
	const refs: Ref[] = [];
	for (const [i, token] of tokens.entries()) {
		if (token.kind !== "name") continue;
		// A local variable shadows the root of that name.
		if (tokens[i - 1]?.value === "let" && tokens[i - 1]?.kind === "keyword") hidden.add(token.value);
		if (!rootNames.has(token.value) || hidden.has(token.value) || isMember(tokens, i)) continue;
		const ref = nameAfter(tokens, i + 1);
		if (ref) refs.push({ root: token.value as Ref["root"], ...ref });
	}
	return refs;
}

/** Whether the name is a member, as in x.steps, or a key, as in {steps: 1}. */
function isMember(tokens: readonly Token[], i: number): boolean {
	const before = tokens[i - 1];
	if (before?.kind === "operator" && (before.value === "." || before.value === "?.")) return true;
	const key = before?.value === "{" || before?.value === ",";
	return key && tokens[i + 1]?.value === ":" && tokens[i + 1]?.kind === "operator";
}

function nameAfter(tokens: readonly Token[], i: number): Omit<Ref, "root"> | undefined {
	const [dot, next, close] = tokens.slice(i, i + 3);
	if (!dot || !next) return undefined;
	if (isDot(dot) && (next.kind === "name" || next.kind === "keyword")) {
		return { name: next.value, from: next.from, to: next.to, quoted: false };
	}
	// steps?.["a"] has both a dot and brackets.
	const open = isDot(dot) && dot.value === "?." ? next : dot;
	const [name, end] = open === dot ? [next, close] : [close, tokens[i + 3]];
	if (open.value !== "[" || name?.kind !== "string" || end?.value !== "]") return undefined;
	return { name: name.value, from: name.from, to: name.to, quoted: true };
}

/** Replaces step names in a text where expressions refer to them. */
export function renameRefs(text: string, refs: readonly Ref[], names: ReadonlyMap<string, string>): string {
	let out = text;
	for (const ref of [...refs].reverse()) {
		const to = ref.root === "steps" || ref.root === "links" ? names.get(ref.name) : undefined;
		if (to === undefined) continue;
		const quote = ref.quoted ? text[ref.from] : "";
		out = `${out.slice(0, ref.from)}${quote}${to}${quote}${out.slice(ref.to)}`;
	}
	return out;
}
