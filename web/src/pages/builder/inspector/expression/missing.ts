import { lex } from "@/shared/workflow/expression/lex";
import { bareSpan, spans } from "@/shared/workflow/expression/template";
import type { Token } from "@/shared/workflow/expression/token";

/** How a field is parsed: as an expression, or as text that may contain expressions. */
export type Form = "bare" | "template";

/** The data available for evaluation. */
export interface Known {
	/** Whether the trigger data is known. */
	readonly trigger: boolean;
	/** The steps whose outcome is known. */
	readonly steps: ReadonlySet<string>;
	/** Those of them that failed or were skipped in the run. */
	readonly failed: ReadonlySet<string>;
	/** Whether the item of the current round is known. */
	readonly item: boolean;
	readonly response: boolean;
}

/** The names that an expression needs but that are not available; steps as `steps.<id>`. */
export function missing(text: string, form: Form, known: Known): string[] {
	const out = new Set<string>();
	for (const span of form === "bare" ? [bareSpan(text)] : spans(text)) {
		const tokens = lex(text, span.from, span.to).filter((token) => token.kind !== "comment");
		for (const [i, token] of tokens.entries()) {
			if (token.kind !== "name" || isDot(tokens[i - 1])) continue;
			const need = needOf(token.value, tokens, i, known);
			if (need) out.add(need);
		}
	}
	return [...out];
}

function needOf(root: string, tokens: readonly Token[], i: number, known: Known): string | undefined {
	switch (root) {
		case "trigger":
			return known.trigger ? undefined : "trigger";
		case "item":
		case "index":
		case "previous":
			return known.item ? undefined : "item";
		case "response":
		case "cursor":
			return known.response ? undefined : "response";
		case "steps": {
			const id = memberAfter(tokens, i + 1);
			return id !== undefined && !known.steps.has(id) ? `steps.${id}` : undefined;
		}
		default:
			return undefined;
	}
}

function memberAfter(tokens: readonly Token[], i: number): string | undefined {
	if (isDot(tokens[i])) return tokens[i + 1]?.value;
	return tokens[i]?.value === "[" && tokens[i + 1]?.kind === "string" ? tokens[i + 1]?.value : undefined;
}

function isDot(token: Token | undefined): boolean {
	return token?.kind === "operator" && (token.value === "." || token.value === "?.");
}

/** Whether a text contains an expression. */
export function isDynamic(text: string, form: Form): boolean {
	return form === "bare" ? text.trim() !== "" : spans(text).length > 0;
}
