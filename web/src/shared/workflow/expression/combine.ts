import { lex } from "./lex";
import { bareSpan } from "./template";

/** A condition without the ${{ }} around it. */
export function expressionOf(condition: string | boolean): string {
	const text = String(condition);
	const span = bareSpan(text);
	return text.slice(span.from, span.to).trim();
}

/** The conjunction of the conditions. */
export function allOf(conditions: readonly string[]): string {
	return conditions.map(bracketed).join(" && ");
}

/** The conjunction of the negated conditions. */
export function noneOf(conditions: readonly string[]): string {
	return conditions.map((condition) => `!${bracketed(condition)}`).join(" && ");
}

/** A line comment would swallow the closing bracket. */
function bracketed(condition: string): string {
	const last = lex(condition).at(-1);
	const comment = last?.kind === "comment" && last.value.startsWith("//");
	return `(${condition}${comment ? "\n" : ""})`;
}
