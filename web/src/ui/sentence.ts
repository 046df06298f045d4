/**
 * sentence writes a message of the API as a sentence. A first word that is a name,
 * such as run_01m7 or steps[0], stays as it is.
 */
export function sentence(text: string): string {
	const begun = /^[a-z]+[ ,]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
	return /[.!?…:]$/.test(begun) || begun === "" ? begun : `${begun}.`;
}
