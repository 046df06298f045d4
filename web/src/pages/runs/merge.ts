import type { InfiniteData } from "@tanstack/react-query";
import type { Schema } from "@/api/client";
import type { Page } from "@/api/query";

export type Run = Schema["AllRunsItem"];
export type RunStatus = Schema["RunStatus"];
export type Pages = InfiniteData<Page<Run>, string | undefined>;

/** What an event says about a run. */
export interface Change {
	run_id: string;
	status: RunStatus;
	finished_at?: string;
	duration_ms?: number;
	error?: string;
}

/**
 * merge brings a list that was read page by page up to date: `fresh` is its first
 * page as it is now, `changes` what became of runs further down. Nothing that was read is
 * read again, and nobody loses their place.
 */
export function merge(old: Pages, fresh: Page<Run>, changes: readonly Change[], status: string | undefined): Pages {
	const newest = new Set(fresh.data.map((run) => run.id));
	const last = fresh.data.at(-1);
	const after = new Map(changes.map((change) => [change.run_id, change]));
	const fits = (run: Run) => !status || run.status === status;
	const pages = old.pages.map((page) => ({
		...page,
		data: page.data
			.filter(
				(run) => !newest.has(run.id) && (!last || fresh.next_cursor === null || run.started_at <= last.started_at),
			)
			.map((run) => changed(run, after.get(run.id)))
			.filter(fits),
	}));
	const [first, ...rest] = pages;
	if (!first) return old;
	// With nothing beyond the first page, that page is the whole list.
	if (fresh.next_cursor === null) return { pages: [fresh], pageParams: old.pageParams.slice(0, 1) };
	return { ...old, pages: [{ ...first, data: [...fresh.data, ...first.data] }, ...rest] };
}

function changed(run: Run, change: Change | undefined): Run {
	if (!change || run.status === change.status) return run;
	return {
		...run,
		status: change.status,
		finished_at: change.finished_at ?? run.finished_at,
		duration_ms: change.duration_ms ?? run.duration_ms,
		error: change.error ? { code: "", message: change.error } : run.error,
	};
}
