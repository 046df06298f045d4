import type { Schema } from "@/api/client";
import { triggerInfo } from "@/shared/triggers";

/** A workflow in the list, with its recent activity. */
export type Workflow = Schema["WorkflowListItem"];
export type Activity = Schema["WorkflowActivity"];
/** A run as the workflow list returns it. */
export type RecentRun = Activity["recent"][number];

export interface Bar {
	id: string;
	status: RecentRun["status"];
	/** From 0 to 1: the duration relative to the longest one. */
	size: number;
}

/** bars returns the bars of a sparkline, oldest run first. */
export function bars(recent: readonly RecentRun[]): Bar[] {
	const longest = Math.max(1, ...recent.map((run) => run.duration_ms));
	return recent.map(({ id, status, duration_ms }) => ({ id, status, size: duration_ms / longest })).reverse();
}

const statusOrder: RecentRun["status"][] = ["succeeded", "failed", "cancelled", "running"];

/** summary describes a sparkline in words. */
export function summary(recent: readonly RecentRun[]): string {
	if (recent.length === 0) return "No runs yet";
	const counts = statusOrder
		.map((status) => ({ status, count: recent.filter((run) => run.status === status).length }))
		.filter(({ count }) => count > 0)
		.map(({ status, count }) => `${count} ${status}`);
	return `Last ${recent.length === 1 ? "run" : `${recent.length} runs`}: ${counts.join(", ")}`;
}

/** percent formats a rate. It shows 100 % and 0 % only if they are exact. */
export function percent(rate: number): string {
	const whole = Math.round(rate * 100);
	if (whole === 100 && rate < 1) return "99 %";
	if (whole === 0 && rate > 0) return "1 %";
	return `${whole} %`;
}

export interface TriggerLabel {
	type: string;
	/** Such as "Schedule", or "2 schedules". */
	text: string;
}

/** triggerLabels returns one label for each type of trigger. */
export function triggerLabels(triggers: readonly { type: string }[]): TriggerLabel[] {
	const counts = new Map<string, number>();
	for (const { type } of triggers) counts.set(type, (counts.get(type) ?? 0) + 1);
	return [...counts].map(([type, count]) => {
		const { name, uncounted } = triggerInfo(type);
		return { type, text: count > 1 && !uncounted ? `${count} ${name.toLowerCase()}s` : name };
	});
}
