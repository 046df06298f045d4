const namePattern = /^[a-zA-Z_][a-zA-Z0-9_]{0,62}$/;

/** nameProblem returns why a name cannot be used in expressions. */
export function nameProblem(name: string): string | undefined {
	if (name === "" || namePattern.test(name)) return undefined;
	return "Use at most 63 letters, digits and underscores. Do not start with a digit.";
}

/** readValue parses the typed value of a variable. */
export function readValue(text: string): { value: unknown } | { problem: string } {
	try {
		return { value: JSON.parse(text) };
	} catch {
		const hint = /^\s*[[{"]/.test(text) ? "" : ` Put text in quotes: ${JSON.stringify(text.trim())}`;
		return { problem: `This is not valid JSON.${hint}` };
	}
}
