import { api, got, type Schema } from "@/api/client";
import type { Run } from "./merge";

export type BulkAction = "cancel" | "retry";

/** eligible returns the runs that the action applies to. */
export function eligible(runs: readonly Run[], deed: BulkAction): Run[] {
	return runs.filter((run) =>
		deed === "cancel" ? run.status === "running" : run.status === "failed" || run.status === "cancelled",
	);
}

export type RetryVersion = NonNullable<Schema["RunRetry"]["version"]>;

export function callApi(deed: BulkAction, run: Run, version: RetryVersion): Promise<unknown> {
	const params = { path: { id: run.id } };
	return deed === "cancel"
		? got(api.POST("/v1/runs/{id}/cancel", { params }))
		: got(api.POST("/v1/runs/{id}/retry", { params, body: { version } }));
}
