import { lex } from "./lex";
import { bareSpan } from "./template";

/** A condition as an expression without the ${{ }} it may stand in. */
export function expressionOf(condition: string | boolean): string {
	const text = String(condition);
	const span = bareSpan(text);
	return text.slice(span.from, span.to).trim();
}

/** The condition that all of these hold. */
export function allOf(conditions: readonly string[]): string {
	return conditions.map(bracketed).join(" && ");
}

/** The condition that none of these holds. */
export function noneOf(conditions: readonly string[]): string {
	return conditions.map((condition) => `!${bracketed(condition)}`).join(" && ");
}

/** A comment up to the end of the line would swallow the bracket behind it. */
function bracketed(condition: string): string {
	const last = lex(condition).at(-1);
	const comment = last?.kind === "comment" && last.value.startsWith("//");
	return `(${condition}${comment ? "\n" : ""})`;
}
