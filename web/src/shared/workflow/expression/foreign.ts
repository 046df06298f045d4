import { spans } from "./template";

/** An expression between {{ and }}, as in other products; n8n puts = before the whole text. */
const foreign = /(?<!\$)\{\{([^{}]+)\}\}/g;

/**
 * rewriteForeign returns a text with its {{ x }} written as ${{ x }}, or undefined if it has none. What is inside an
 * expression already stays: a map in a map ends with braces too.
 */
export function rewriteForeign(text: string): string | undefined {
	const own = spans(text);
	let found = false;
	const rewritten = text.replace(foreign, (whole, inner: string, at: number) => {
		if (inner.trim() === "" || own.some((span) => at >= span.open && at < span.close)) return whole;
		found = true;
		return `\${{ ${inner.trim()} }}`;
	});
	if (!found) return undefined;
	return rewritten.startsWith("=${{") ? rewritten.slice(1) : rewritten;
}
