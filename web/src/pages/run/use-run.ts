import { useQueries, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { api, got, type Schema } from "@/api/client";
import { useFollow } from "@/live/hooks";
import { executionOutcome } from "@/shared/run/outcome";
import type { Definition, Layout, Step } from "@/shared/workflow/model/types";
import { handledFailures, type Outcomes } from "./model/outcome";
import { RunRecord } from "./model/record";

/**
 * useRunRecord follows a run from start to finish. The stream omits inputs and outputs, so
 * that runs of any size can be shown.
 */
export function useRunRecord(id: string): RunRecord {
	const [record] = useState(() => new RunRecord());
	useFollow(`/v1/runs/${id}/events`, (event) => record.apply(event));
	useEffect(() => () => record.stop(), [record]);
	useSyncExternalStore(record.subscribe, record.snapshot);
	return record;
}

/** useWorkflow reads the current workflow: its name and the positions of its steps. */
export function useWorkflow(id: string | undefined) {
	return useQuery({
		queryKey: ["workflows", id],
		queryFn: async ({ signal }) =>
			(await got(api.GET("/v1/workflows/{id}", { params: { path: { id: id ?? "" } }, signal }))) as Schema["Workflow"],
		enabled: id !== undefined,
		// A user returning from a fix should be offered the new version.
		staleTime: 0,
	});
}

/** useDefinition reads the definition that the run executes, which may differ from the current workflow. */
export function useDefinition(id: string) {
	const query = useQuery({
		queryKey: ["runs", id, "definition"],
		queryFn: ({ signal }) => got(api.GET("/v1/runs/{id}/definition", { params: { path: { id } }, signal })),
		staleTime: Number.POSITIVE_INFINITY,
	});
	const definition = query.data as Definition | undefined;
	return { ...query, definition };
}

/** useGraphDoc returns the definition with the stored positions of its steps. */
export function useGraphDoc(definition: Definition | undefined, layout: Layout | undefined) {
	return useMemo(() => definition && { ...definition, layout: layout ?? {} }, [definition, layout]);
}

/** stepQuery reads the input and output of a step, and refetches them when the step changes. */
function stepQuery(run: string, record: RunRecord, path: string) {
	const head = record.steps.get(path);
	return {
		queryKey: ["runs", run, "steps", path, head?.status, head?.attempt],
		queryFn: ({ signal }: { signal: AbortSignal }) =>
			got(api.GET("/v1/runs/{id}/steps/{step_id}", { params: { path: { id: run, step_id: path } }, signal })),
		enabled: head !== undefined && head.status !== "skipped",
		staleTime: Number.POSITIVE_INFINITY,
	};
}

export function useStep(run: string, record: RunRecord, path: string) {
	return useQuery(stepQuery(run, record, path));
}

/** A run can have thousands of approvals in a loop; each decision is a request. */
const mostDecisions = 50;

/**
 * useOutcomes returns what the statuses of a run do not say. Which approvals were rejected is in their output, which the
 * stream omits.
 */
export function useOutcomes(run: string, record: RunRecord, steps: readonly Step[]): Outcomes {
	const decided = [...record.decided].slice(0, mostDecisions);
	const key = useQueries({ queries: decided.map((path) => stepQuery(run, record, path)) })
		.flatMap(({ data }) => (data && executionOutcome(data) === "rejected" ? [data.step_id] : []))
		.join();
	const rejected = useMemo(() => new Set(key === "" ? [] : key.split(",")), [key]);
	const handled = useMemo(() => handledFailures(record, steps), [record, record.version, steps]);
	return useMemo(() => ({ rejected, handled }), [rejected, handled]);
}

/** totalQuery reads the total number of rounds of a loop; it is unknown for a repeat. */
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

/** useTotals reads the totals of several loops, by loop id. */
export function useTotals(run: string, record: RunRecord, loops: readonly Step[], paths: ReadonlyMap<string, string>) {
	const found = useQueries({
		queries: loops.map((loop) => totalQuery(run, record, paths.get(loop.id) ?? loop.id, loop)),
	}).map((query) => query.data ?? undefined);
	const key = found.join();
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key changes with the values
	return useMemo(() => new Map(loops.map((loop, at) => [loop.id, found[at]])), [loops, key]);
}
