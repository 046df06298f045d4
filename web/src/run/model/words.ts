import { fullTime } from "@/ui/time";
import type { Head, RunRecord } from "./record";

const instant = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** sentence makes what the server gives as a reason one for people: times as they are read here. */
export function sentence(reason: string): string {
	const text = reason.replace(instant, (at) => fullTime(at));
	return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Shorter waits are part of going on: to announce each would make the page restless. */
const worthSaying = 10_000;

/** waitOf is what the run as a whole waits for, unless it will be over in a moment. */
export function waitOf(record: RunRecord): Head["waiting_for"] {
	const { head } = record;
	if (head?.status !== "running" || !head.waiting_for) return null;
	const { step_id: path, until } = head.waiting_for;
	if (until === null) return head.waiting_for;
	const since = (path === null ? undefined : record.steps.get(path))?.started_at ?? head.started_at;
	return Date.parse(until) - Date.parse(since) >= worthSaying ? head.waiting_for : null;
}
