import type { Schema } from "@/api/client";
import { runStatusValues, runTriggerTypeValues } from "@/api/values";
import type { ShownStatus } from "./merge";

export type FilterName = "status" | "workflow" | "trigger" | "since" | "after" | "before" | "text";
export type Filters = Partial<Record<FilterName, string>>;

const hour = 3_600_000;

/** Time ranges, by their name in the URL. */
export const spans: Record<string, { name: string; ms: number }> = {
	"1h": { name: "Last hour", ms: hour },
	"24h": { name: "Last 24 hours", ms: 24 * hour },
	"7d": { name: "Last 7 days", ms: 7 * 24 * hour },
	"30d": { name: "Last 30 days", ms: 30 * 24 * hour },
};

export const custom = "custom";
/** The statuses to filter by. Waiting runs are listed separately from running ones. */
export const statusNames = runStatusValues.flatMap((status): ShownStatus[] =>
	status === "running" ? [status, "waiting"] : [status],
);
export const triggerTypes = runTriggerTypeValues;

/** parseTime parses the value of a datetime-local input; undefined if it is invalid. */
function parseTime(text: string | undefined): string | undefined {
	const at = text ? Date.parse(text) : Number.NaN;
	return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/** queryOf returns the API query for the filters. It ignores invalid values from the URL. */
export function queryOf(filters: Filters, now: number) {
	const span = spans[filters.since ?? ""];
	const own = filters.since === custom;
	const status = statusNames.find((name) => name === filters.status);
	return {
		status: status === "waiting" ? ("running" as Schema["RunStatus"]) : status,
		waiting: status === "waiting" ? true : status === "running" ? false : undefined,
		workflow_id: filters.workflow || undefined,
		trigger: filters.trigger || undefined,
		text: filters.text?.trim() || undefined,
		started_after: span ? new Date(now - span.ms).toISOString() : own ? parseTime(filters.after) : undefined,
		started_before: own ? parseTime(filters.before) : undefined,
	};
}

export function isFiltered(filters: Filters): boolean {
	return Object.values(filters).some(Boolean);
}
