/** quote makes a text one word of a shell, whatever is in it. */
export function quote(text: string): string {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** startAsCurl is the call that starts a run with the same payload. The key stays out of it. */
export function startAsCurl(origin: string, workflow: string, payload: unknown): string {
	return [
		`curl -X POST ${quote(`${origin}/v1/workflows/${workflow}/runs`)}`,
		`-H "Authorization: Bearer $STEPMILL_KEY"`,
		`-H 'Content-Type: application/json'`,
		`-d ${quote(JSON.stringify({ payload }))}`,
	].join(" \\\n  ");
}
