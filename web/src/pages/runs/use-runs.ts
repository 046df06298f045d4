import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useLive } from "@/live/hooks";
import { type Filters, queryOf } from "./filters";
import { type Change, merge, type Pages } from "./merge";

const limit = 50;

function read(filters: Filters, cursor: string | undefined, signal?: AbortSignal) {
	const query = { ...queryOf(filters, Date.now()), limit, cursor };
	return got(api.GET("/v1/runs", { params: { query }, signal }));
}

/** useRuns lists runs and keeps the list up to date as they start and finish. */
export function useRuns(filters: Filters) {
	const key = ["runs", "all", filters] as const;
	const pages = usePages(key, (cursor, signal) => read(filters, cursor, signal));
	const client = useQueryClient();
	const changes = useRef<Change[]>([]);
	const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
	useEffect(() => () => clearTimeout(timer.current), []);
	const latest = useRef(() => Promise.resolve());
	const refresh = async () => {
		timer.current = undefined;
		const seen = changes.current.splice(0);
		try {
			const fresh = await read(filters, undefined);
			client.setQueryData<Pages>(key, (old) => old && merge(old, fresh, seen, filters.status));
		} catch {
			// The next event or visit refetches the list.
		}
	};
	useEffect(() => {
		latest.current = refresh;
	});
	// No event announces that a run starts or stops waiting.
	const open = pages.items.some((run) => run.finished_at === null);
	useEffect(() => {
		if (!open) return undefined;
		const again = setInterval(() => {
			if (document.visibilityState !== "hidden") void latest.current();
		}, 5_000);
		return () => clearInterval(again);
	}, [open]);
	useLive("run.*", (event) => {
		if (event.type === "gap") return void client.invalidateQueries({ queryKey: key });
		const data = event.data?.data ?? event.data;
		if (data?.run_id) changes.current.push(data as Change);
		timer.current ??= setTimeout(() => void refresh(), 700);
	});
	return pages;
}
