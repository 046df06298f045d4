/**
 * sentence formats an API message as a sentence. A first word that is an identifier, such
 * as run_01m7 or steps[0], is not capitalized.
 */
export function sentence(text: string): string {
	const begun = /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
	return /[.!?…:]$/.test(begun) || begun === "" ? begun : `${begun}.`;
}

/** inSentence formats a label for use inside a sentence: "Output" becomes "output", "API key" stays. */
export function inSentence(label: string): string {
	return /^[A-Z][a-z]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
}
