import type { InfiniteData } from "@tanstack/react-query";
import type { Schema } from "@/api/client";
import type { Page } from "@/api/query";

export type Run = Schema["AllRunsItem"];
export type RunStatus = Schema["RunStatus"];

/** The status shown for a run, and used in filters. */
export type ShownStatus = RunStatus | "waiting";

/** shownStatus distinguishes waiting runs from running ones. */
export function shownStatus(run: Pick<Run, "status" | "waiting_for">): ShownStatus {
	return run.status === "running" && run.waiting_for ? "waiting" : run.status;
}

export type Pages = InfiniteData<Page<Run>, string | undefined>;

/** A run event. */
export interface Change {
	run_id: string;
	status: RunStatus;
	finished_at?: string;
	duration_ms?: number;
	error?: string;
}

/**
 * merge updates a paginated list: `fresh` is the current first page, `changes` are the
 * events about runs further down. It refetches nothing and keeps the scroll position.
 */
export function merge(old: Pages, fresh: Page<Run>, changes: readonly Change[], status: string | undefined): Pages {
	const newest = new Set(fresh.data.map((run) => run.id));
	const last = fresh.data.at(-1);
	const after = new Map(changes.map((change) => [change.run_id, change]));
	const fits = (run: Run) => !status || shownStatus(run) === status;
	const pages = old.pages.map((page) => ({
		...page,
		data: page.data
			.filter(
				(run) => !newest.has(run.id) && (!last || fresh.next_cursor === null || run.started_at <= last.started_at),
			)
			.map((run) => applyChange(run, after.get(run.id)))
			.filter(fits),
	}));
	const [first, ...rest] = pages;
	if (!first) return old;
	// If there is no next page, the first page is the whole list.
	if (fresh.next_cursor === null) return { pages: [fresh], pageParams: old.pageParams.slice(0, 1) };
	return { ...old, pages: [{ ...first, data: [...fresh.data, ...first.data] }, ...rest] };
}

function applyChange(run: Run, change: Change | undefined): Run {
	if (!change || run.status === change.status) return run;
	return {
		...run,
		status: change.status,
		waiting_for: null,
		finished_at: change.finished_at ?? run.finished_at,
		duration_ms: change.duration_ms ?? run.duration_ms,
		error: change.error ? { code: "", message: change.error } : run.error,
	};
}
