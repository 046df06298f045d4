import type { Head, RunRecord } from "./record";

/** Shorter waits are not announced, because the page would flicker. */
const minShownWait = 10_000;

/** waitOf returns what the run is waiting for, unless the wait is short. */
export function waitOf(record: RunRecord): Head["waiting_for"] {
	const { head } = record;
	if (head?.status !== "running" || !head.waiting_for) return null;
	const { step_id: path, until } = head.waiting_for;
	if (until === null) return head.waiting_for;
	const since = (path === null ? undefined : record.steps.get(path))?.started_at ?? head.started_at;
	return Date.parse(until) - Date.parse(since) >= minShownWait ? head.waiting_for : null;
}
