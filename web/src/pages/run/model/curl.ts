/** quote quotes text for a shell. */
export function quote(text: string): string {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** startAsCurl returns the command that starts a run with the same payload. It does not include the API key. */
export function startAsCurl(origin: string, workflow: string, payload: unknown): string {
	return [
		`curl -X POST ${quote(`${origin}/v1/workflows/${workflow}/runs`)}`,
		`-H "Authorization: Bearer $STEPMILL_KEY"`,
		`-H 'Content-Type: application/json'`,
		`-d ${quote(JSON.stringify({ payload }))}`,
	].join(" \\\n  ");
}
