import type { Operation } from "./document";

/** quote quotes text for a shell. */
export function quote(value: string): string {
	return /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/** curl formats an operation as a command; without a key it uses an environment variable. */
export function curl(operation: Operation, origin: string, key: string): string {
	const path = operation.path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
		const example = operation.parameters.find((one) => one.in === "path" && one.name === name)?.example;
		return example === undefined ? whole : encodeURIComponent(String(example));
	});
	const query = operation.parameters
		.filter((one) => one.in === "query" && one.required)
		.map((one) => `${one.name}=${encodeURIComponent(String(one.example ?? ""))}`);
	const address = origin + path + (query.length > 0 ? `?${query.join("&")}` : "");
	const parts = [operation.method === "GET" ? "curl" : `curl -X ${operation.method}`, quote(address)];
	if (operation.scope)
		parts.push(`-H ${key ? quote(`Authorization: Bearer ${key}`) : '"Authorization: Bearer $STEPMILL_KEY"'}`);
	if (operation.body?.example !== undefined) {
		parts.push("-H 'Content-Type: application/json'");
		parts.push(`-d ${quote(JSON.stringify(operation.body.example))}`);
	}
	return parts.join(" \\\n  ");
}
