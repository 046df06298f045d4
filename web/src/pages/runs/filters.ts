import type { Schema } from "@/api/client";
import type { RunStatus } from "./merge";

export type FilterName = "status" | "workflow" | "trigger" | "since" | "after" | "before" | "text";
export type Filters = Partial<Record<FilterName, string>>;

const hour = 3_600_000;

/** Times to look back, as the address names them. */
export const spans: Record<string, { name: string; ms: number }> = {
	"1h": { name: "Last hour", ms: hour },
	"24h": { name: "Last 24 hours", ms: 24 * hour },
	"7d": { name: "Last 7 days", ms: 7 * 24 * hour },
	"30d": { name: "Last 30 days", ms: 30 * 24 * hour },
};

export const custom = "custom";
export const statusNames: RunStatus[] = ["running", "succeeded", "failed", "cancelled"];
export const triggerTypes = ["manual", "schedule", "webhook", "event", "poll", "run"];

/** instant reads a time as an input of the browser writes it; nothing when it is none. */
function instant(text: string | undefined): string | undefined {
	const at = text ? Date.parse(text) : Number.NaN;
	return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/** queryOf is what the API is asked for. What the address says wrongly is left out rather than refused. */
export function queryOf(filters: Filters, now: number) {
	const span = spans[filters.since ?? ""];
	const own = filters.since === custom;
	return {
		status: statusNames.find((status) => status === filters.status) as Schema["RunStatus"] | undefined,
		workflow_id: filters.workflow || undefined,
		trigger: filters.trigger || undefined,
		text: filters.text?.trim() || undefined,
		started_after: span ? new Date(now - span.ms).toISOString() : own ? instant(filters.after) : undefined,
		started_before: own ? instant(filters.before) : undefined,
	};
}

export function isFiltered(filters: Filters): boolean {
	return Object.values(filters).some(Boolean);
}
