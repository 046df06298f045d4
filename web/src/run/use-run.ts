import { useQueries, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { api, got } from "@/api/client";
import type { Definition, Layout, Step } from "@/builder/model/types";
import { useFollow } from "@/live/hooks";
import { RunRecord } from "./model/record";

/**
 * useRecord follows a run from its beginning to its end. The stream tells every step
 * without what went in and came out, so that a run of any length can be shown.
 */
export function useRecord(id: string): RunRecord {
	const [record] = useState(() => new RunRecord());
	useFollow(`/v1/runs/${id}/events`, (event) => record.apply(event));
	useEffect(() => () => record.stop(), [record]);
	useSyncExternalStore(record.subscribe, record.snapshot);
	return record;
}

/** useWorkflow is the workflow as it is now: its name, and where people have put its steps. */
export function useWorkflow(id: string | undefined) {
	return useQuery({
		queryKey: ["workflows", id],
		queryFn: ({ signal }) => got(api.GET("/v1/workflows/{id}", { params: { path: { id: id ?? "" } }, signal })),
		enabled: id !== undefined,
	});
}

/** useDefinition is what the run executes, whatever the workflow is now. */
export function useDefinition(id: string) {
	const query = useQuery({
		queryKey: ["runs", id, "definition"],
		queryFn: ({ signal }) => got(api.GET("/v1/runs/{id}/definition", { params: { path: { id } }, signal })),
		staleTime: Number.POSITIVE_INFINITY,
	});
	const definition = query.data as Definition | undefined;
	return { ...query, definition };
}

/** useDrawn is the definition as it is drawn: with the places of the steps that still have one. */
export function useDrawn(definition: Definition | undefined, layout: Layout | undefined) {
	return useMemo(() => definition && { ...definition, layout: layout ?? {} }, [definition, layout]);
}

/** useStep reads what went into a step and came out of it, again whenever it has changed. */
export function useStep(run: string, record: RunRecord, path: string) {
	const head = record.steps.get(path);
	return useQuery({
		queryKey: ["runs", run, "steps", path, head?.status, head?.attempt],
		queryFn: ({ signal }) =>
			got(api.GET("/v1/runs/{id}/steps/{step_id}", { params: { path: { id: run, step_id: path } }, signal })),
		enabled: head !== undefined && head.status !== "skipped",
		staleTime: Number.POSITIVE_INFINITY,
	});
}

/** totalQuery is how many rounds a loop will have. Nobody knows for a repeat. */
function totalQuery(run: string, record: RunRecord, path: string, block: Step | undefined) {
	const head = record.steps.get(path);
	return {
		queryKey: ["runs", run, "total", path],
		queryFn: async ({ signal }: { signal: AbortSignal }) => {
			const params = { path: { id: run, step_id: path }, query: { limit: 1 } };
			return (await got(api.GET("/v1/runs/{id}/steps/{step_id}/rounds", { params, signal }))).total;
		},
		enabled: block?.foreach !== undefined && head !== undefined && head.status !== "skipped",
		staleTime: Number.POSITIVE_INFINITY,
	};
}

export function useTotal(run: string, record: RunRecord, path: string, block: Step | undefined): number | undefined {
	return useQuery(totalQuery(run, record, path, block)).data ?? undefined;
}

/** useTotals are those of several loops, by the id of the loop. */
export function useTotals(run: string, record: RunRecord, loops: readonly Step[], paths: ReadonlyMap<string, string>) {
	const found = useQueries({
		queries: loops.map((loop) => totalQuery(run, record, paths.get(loop.id) ?? loop.id, loop)),
	}).map((query) => query.data ?? undefined);
	const key = found.join();
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key says whether one has changed
	return useMemo(() => new Map(loops.map((loop, at) => [loop.id, found[at]])), [loops, key]);
}
