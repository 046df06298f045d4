import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { api, got, type Schema } from "@/api/client";
import type { JsonObject } from "@/builder/model";
import { useActions as useAllActions } from "@/builder/picker/actions";
import { useEditor } from "@/builder/state";
import type { JsonSchema } from "../inspector/form/schema";

const forever = { staleTime: Number.POSITIVE_INFINITY };

/** useActions is all actions that a step can use, by name. */
export function useActions(): ReadonlyMap<string, Schema["Action"]> | undefined {
	const { data } = useAllActions();
	return useMemo(() => data && new Map(data.map((action) => [action.name, action])), [data]);
}

/** useFormat is the JSON Schema of the workflow format, for all that is no input of an action. */
export function useFormat(): JsonSchema | undefined {
	return useQuery({
		queryKey: ["format"],
		queryFn: async ({ signal }) => (await got(api.GET("/v1/schemas/workflow.json", { signal }))) as JsonSchema,
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

/** useRecentRuns is the latest runs of a workflow, without their steps. */
export function useRecentRuns(workflow: string) {
	return useQuery({
		queryKey: ["runs", "recent", workflow],
		queryFn: ({ signal }) => {
			const params = { path: { workflow_id: workflow }, query: { limit: 10 } };
			return got(api.GET("/v1/workflows/{workflow_id}/runs", { params, signal }));
		},
	}).data?.data;
}

export function useTriggerStates(workflow: string) {
	return useQuery({
		queryKey: ["workflows", workflow, "triggers"],
		queryFn: ({ signal }) =>
			got(api.GET("/v1/workflows/{id}/triggers", { params: { path: { id: workflow } }, signal })),
	}).data?.data;
}

export function useHookRequests(workflow: string, trigger: string | null) {
	return useQuery({
		queryKey: ["workflows", workflow, "requests", trigger],
		queryFn: ({ signal }) => {
			const params = { path: { id: workflow, trigger_id: trigger ?? "" } };
			return got(api.GET("/v1/workflows/{id}/triggers/{trigger_id}/requests", { params, signal }));
		},
		enabled: trigger !== null,
		retry: false,
	}).data?.data;
}

/** useWorkflowNames is the other workflows of the workspace. */
export function useWorkflowNames() {
	const { id } = useEditor();
	const { data } = useQuery({
		queryKey: ["workflows", "names"],
		queryFn: ({ signal }) => got(api.GET("/v1/workflows", { params: { query: { limit: 100 } }, signal })),
	});
	return useMemo(() => (data?.data ?? []).filter((workflow) => workflow.id !== id), [data, id]);
}

/** useNames is the names of the variables and secrets of the workspace. */
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

/** The output of an action as JSON Schema. */
export function outputOf(
	actions: ReadonlyMap<string, Schema["Action"]> | undefined,
	uses: string,
): JsonObject | undefined {
	return actions?.get(uses)?.output_schema as JsonObject | undefined;
}
