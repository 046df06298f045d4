import type { Schema } from "@/api/client";

/** A workflow of the list, with what has been going on with it. */
export type Workflow = Schema["WorkflowListItem"];
export type Activity = Schema["WorkflowActivity"];
/** A run as the list of workflows tells of it. */
export type RecentRun = Activity["recent"][number];

export interface Bar {
	id: string;
	status: RecentRun["status"];
	/** From 0 to 1: how long it took, compared with the longest. */
	size: number;
}

/** bars are the runs of a spark line, the oldest first. */
export function bars(recent: readonly RecentRun[]): Bar[] {
	const longest = Math.max(1, ...recent.map((run) => run.duration_ms));
	return recent.map(({ id, status, duration_ms }) => ({ id, status, size: duration_ms / longest })).reverse();
}

const order: RecentRun["status"][] = ["succeeded", "failed", "cancelled", "running"];

/** summary says in words what a spark line shows. */
export function summary(recent: readonly RecentRun[]): string {
	if (recent.length === 0) return "No runs yet";
	const counts = order
		.map((status) => ({ status, count: recent.filter((run) => run.status === status).length }))
		.filter(({ count }) => count > 0)
		.map(({ status, count }) => `${count} ${status}`);
	return `Last ${recent.length === 1 ? "run" : `${recent.length} runs`}: ${counts.join(", ")}`;
}

/** percent writes a rate without claiming all or nothing where it was nearly so. */
export function percent(rate: number): string {
	const whole = Math.round(rate * 100);
	if (whole === 100 && rate < 1) return "99 %";
	if (whole === 0 && rate > 0) return "1 %";
	return `${whole} %`;
}

const names: Record<string, string> = {
	manual: "By hand",
	schedule: "Schedule",
	webhook: "Webhook",
	event: "Event",
	poll: "Poll",
};

export interface Glance {
	type: string;
	/** Such as "Schedule", or "2 schedules". */
	text: string;
}

/** glance names each kind of trigger once. */
export function glance(triggers: readonly { type: string }[]): Glance[] {
	const counts = new Map<string, number>();
	for (const { type } of triggers) counts.set(type, (counts.get(type) ?? 0) + 1);
	return [...counts].map(([type, count]) => {
		const name = names[type] ?? type;
		return { type, text: count > 1 && type !== "manual" ? `${count} ${name.toLowerCase()}s` : name };
	});
}
