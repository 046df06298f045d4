import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, got, gotOrNull } from "@/api/client";
import type { components } from "@/api/schema";
import { useLiveQueries } from "@/live/hooks";
import {
	foreignNames,
	type KnownActions,
	useOperations,
	useActions as useOwnActions,
} from "@/pages/builder/picker/actions";
import { useDocument } from "@/pages/builder/state";
import type { JsonSchema } from "@/shared/listed/schema";
import { staleTimeOf } from "@/shared/own";
import { allSteps, isServiceTrigger, type JsonObject } from "@/shared/workflow/model";

const forever = { staleTime: Number.POSITIVE_INFINITY };

/** useActions returns the actions of Stepmill itself and the operations that the document uses, by name. */
export function useActions(): KnownActions | undefined {
	const { data } = useOwnActions();
	const { steps } = useDocument();
	// As text, so that it stays the same value while other parts of steps are edited.
	const used = useMemo(() => {
		const names = new Set(allSteps(steps).flatMap(({ uses }) => (uses ? [uses] : [])));
		return JSON.stringify([...names]);
	}, [steps]);
	const { wanted, unknown } = useMemo(() => foreignNames(JSON.parse(used) as string[], data), [used, data]);
	const operations = useOperations(wanted);
	return useMemo(() => {
		if (!data) return undefined;
		const own = data.map((action) => [action.name, action] as const);
		return new Map([...own, ...unknown.map((name) => [name, null] as const), ...operations]);
	}, [data, unknown, operations]);
}

/** useServiceTrigger returns what is known about a type of triggers of a service; null if it does not exist. */
export function useServiceTrigger(type: string) {
	const [id = "", trigger = ""] = type.split(".");
	return useQuery({
		queryKey: ["integrations", id, "triggers", trigger],
		queryFn: ({ signal }) =>
			gotOrNull(api.GET("/v1/integrations/{id}/triggers/{trigger}", { params: { path: { id, trigger } }, signal })),
		enabled: isServiceTrigger(type),
		staleTime: staleTimeOf(type),
	});
}

/** useFormat returns the JSON Schema of the workflow format, for everything except action inputs and names of services. */
export function useFormat(): JsonSchema | undefined {
	return useQuery({
		queryKey: ["format"],
		queryFn: async ({ signal }) =>
			(await got(
				api.GET("/v1/schemas/workflow.json", { params: { query: { services: false } }, signal }),
			)) as JsonSchema,
		...forever,
	}).data;
}

export function useRun(id: string | null) {
	return useQuery({
		queryKey: ["runs", id],
		queryFn: ({ signal }) => got(api.GET("/v1/runs/{id}", { params: { path: { id: id ?? "" } }, signal })),
		enabled: id !== null,
	});
}

/** useRecentRuns returns the latest runs of a workflow, without their steps. */
export function useRecentRuns(workflow: string) {
	return useQuery({
		queryKey: ["runs", "recent", workflow],
		queryFn: ({ signal }) => {
			const params = { path: { workflow_id: workflow }, query: { limit: 10 } };
			return got(api.GET("/v1/workflows/{workflow_id}/runs", { params, signal }));
		},
	}).data?.data;
}

/** useTriggerStates returns the states of a workflow's triggers, and refetches them when runs start. */
export function useTriggerStates(workflow: string) {
	useLiveQueries("run.started", ["workflows", workflow, "triggers"]);
	return useQuery({
		queryKey: ["workflows", workflow, "triggers"],
		queryFn: ({ signal }) =>
			got(api.GET("/v1/workflows/{id}/triggers", { params: { path: { id: workflow } }, signal })),
		refetchInterval: ({ state }) => (state.data?.data.some(changesSoon) ? pendingEvery : false),
	}).data?.data;
}

/** How often to look whether a service was told where to call, or a test call came, which no event announces. */
const pendingEvery = 2_000;

const changesSoon = ({ subscription, listening_until }: components["schemas"]["TriggerState"]) =>
	subscription?.status === "pending" || listening_until !== null;

/** How often to poll for requests that started no run, because no event announces them. */
export const callsEvery = 4_000;

/** useHookRequests returns the latest requests of a webhook trigger. With `every` it polls for new ones. */
export function useHookRequests(workflow: string, trigger: string | null, every?: number) {
	useLiveQueries("run.started", ["workflows", workflow, "requests"]);
	return useQuery({
		queryKey: ["workflows", workflow, "requests", trigger],
		queryFn: ({ signal }) => {
			const params = { path: { id: workflow, trigger_id: trigger ?? "" } };
			return got(api.GET("/v1/workflows/{id}/triggers/{trigger_id}/requests", { params, signal }));
		},
		enabled: trigger !== null,
		retry: false,
		refetchInterval: every ?? false,
	}).data?.data;
}

/** useNames returns the names of the workspace's variables and secrets. */
export function useNames(): { vars?: string[]; secrets?: string[] } {
	const { data } = useQuery({
		queryKey: ["names"],
		queryFn: async ({ signal }) => {
			const query = { limit: 100 };
			const [vars, secrets] = await Promise.all([
				got(api.GET("/v1/variables", { params: { query }, signal })),
				got(api.GET("/v1/secrets", { params: { query }, signal })),
			]);
			return { vars: vars.data.map((one) => one.name), secrets: secrets.data.map((one) => one.name) };
		},
	});
	return data ?? {};
}

/** The output schema of an action. */
export function outputOf(actions: KnownActions | undefined, uses: string): JsonObject | undefined {
	return actions?.get(uses)?.output_schema as JsonObject | undefined;
}
