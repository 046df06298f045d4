import type { Schema } from "@/api/client";
import { scopeNameValues } from "@/api/values";

export type Scope = Schema["ScopeName"];

const descriptions: Record<Scope, string> = {
	read: "View workflows, runs, logs, webhooks, usage and the names of secrets.",
	write: "Create, change and delete workflows, webhooks, secrets and variables.",
	execute: "Start, cancel and retry runs, decide approvals and test steps.",
	admin: "All of the above, plus API keys, members and the audit log.",
};

/** The scopes and what they allow, in display order. */
export const scopes = scopeNameValues.map((scope) => ({ scope, description: descriptions[scope] }));

const day = 86_400_000;

export const lifetimes = [
	{ value: "30", label: "30 days" },
	{ value: "90", label: "90 days" },
	{ value: "365", label: "One year" },
	{ value: "date", label: "Until a date…" },
	{ value: "never", label: "Never" },
];

/** expiry returns when a key expires: after some days, at the end of a date, or never. */
export function expiry(lifetime: string, date: string, now: number): string | null {
	if (lifetime === "never") return null;
	if (lifetime !== "date") return new Date(now + Number(lifetime) * day).toISOString();
	const [year, month, date_] = date.split("-").map(Number) as [number, number, number];
	return new Date(year, month - 1, date_ + 1).toISOString();
}

/** example returns a command that a key with these scopes may run. */
export function example(origin: string, key: string, granted: readonly string[]): string {
	const may = (scope: Scope) => granted.includes("admin") || granted.includes(scope);
	const auth = `  -H 'Authorization: Bearer ${key}'`;
	const json = "  -H 'Content-Type: application/json'";
	if (may("read")) return `curl -sS ${origin}/v1/workflows \\\n${auth}`;
	if (may("write"))
		return `curl -sS ${origin}/v1/workflows \\\n${auth} \\\n${json} \\\n  -d '{"name": "Greet a customer"}'`;
	return `curl -sS ${origin}/v1/workflows/WORKFLOW_ID/runs \\\n${auth} \\\n${json} \\\n  -d '{"payload": {}}'`;
}
