import type { Again } from "./again";

/** quote quotes text for a shell. */
export function quote(text: string): string {
	return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** startAsCurl returns the command that runs again with the same data. It does not include the API key. */
export function startAsCurl(origin: string, workflow: string, { trigger, body }: Again): string {
	const path = trigger === null ? "runs" : `triggers/${trigger}/test`;
	return [
		`curl -X POST ${quote(`${origin}/v1/workflows/${workflow}/${path}`)}`,
		`-H "Authorization: Bearer $STEPMILL_KEY"`,
		`-H 'Content-Type: application/json'`,
		`-d ${quote(JSON.stringify(body))}`,
	].join(" \\\n  ");
}
