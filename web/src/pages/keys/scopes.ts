import type { Schema } from "@/api/client";

export type Scope = Schema["ScopeName"];

/** What each scope is good for, in the order in which they are offered. */
export const scopes: { scope: Scope; does: string }[] = [
	{ scope: "read", does: "See workflows, runs, logs, webhooks and usage, and the names of secrets." },
	{ scope: "write", does: "Create, change and delete workflows, webhooks, secrets and variables." },
	{ scope: "execute", does: "Start, cancel and retry runs, answer approvals, try out steps." },
	{ scope: "admin", does: "All of the above, and API keys, members and the audit log." },
];

const day = 86_400_000;

export const lifetimes = [
	{ value: "30", label: "30 days" },
	{ value: "90", label: "90 days" },
	{ value: "365", label: "One year" },
	{ value: "date", label: "Until a date…" },
	{ value: "never", label: "Never" },
];

/** expiry is when a key stops working: after some days, at the end of a day, or never. */
export function expiry(lifetime: string, date: string, now: number): string | null {
	if (lifetime === "never") return null;
	if (lifetime !== "date") return new Date(now + Number(lifetime) * day).toISOString();
	const [year, month, date_] = date.split("-").map(Number) as [number, number, number];
	return new Date(year, month - 1, date_ + 1).toISOString();
}

/** example is a call that a key with these scopes may make. */
export function example(origin: string, key: string, granted: readonly string[]): string {
	const may = (scope: Scope) => granted.includes("admin") || granted.includes(scope);
	const auth = `  -H 'Authorization: Bearer ${key}'`;
	const json = "  -H 'Content-Type: application/json'";
	if (may("read")) return `curl -sS ${origin}/v1/workflows \\\n${auth}`;
	if (may("write"))
		return `curl -sS ${origin}/v1/workflows \\\n${auth} \\\n${json} \\\n  -d '{"name": "Greet a customer"}'`;
	return `curl -sS ${origin}/v1/workflows/WORKFLOW_ID/runs \\\n${auth} \\\n${json} \\\n  -d '{"payload": {}}'`;
}
