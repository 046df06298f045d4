const form = /^[a-zA-Z_][a-zA-Z0-9_]{0,62}$/;

/** nameProblem says why expressions could not refer to a name. */
export function nameProblem(name: string): string | undefined {
	if (name === "" || form.test(name)) return undefined;
	return "Letters, digits and underscores only, at most 63, and no digit at the beginning.";
}

/** readValue reads what was typed as the value of a variable. */
export function readValue(text: string): { value: unknown } | { problem: string } {
	try {
		return { value: JSON.parse(text) };
	} catch {
		const hint = /^\s*[[{"]/.test(text) ? "" : ` A text needs quotes: ${JSON.stringify(text.trim())}`;
		return { problem: `This is not JSON.${hint}` };
	}
}
