import { api, got, type Schema } from "@/api/client";
import { type ApiError, toApiError } from "@/api/error";
import type { Run } from "./merge";

export type BulkAction = "cancel" | "retry";

export interface BulkFailure {
	run: Run;
	error: ApiError;
}

export interface Progress {
	done: number;
	failed: BulkFailure[];
}

const concurrency = 4;
const maxAttempts = 3;

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

/** runAll makes one call per run, a few at a time, and continues if one fails. It honors Retry-After. */
export async function runAll(
	runs: readonly Run[],
	one: (run: Run) => Promise<unknown>,
	onProgress: (progress: Progress) => void,
	signal: AbortSignal,
): Promise<Progress> {
	const queue = [...runs];
	let progress: Progress = { done: 0, failed: [] };
	const worker = async () => {
		for (let run = queue.shift(); run && !signal.aborted; run = queue.shift()) {
			const error = await attempt(run, one);
			progress = {
				done: progress.done + 1,
				failed: error ? [...progress.failed, { run, error }] : progress.failed,
			};
			onProgress(progress);
		}
	};
	await Promise.all(Array.from({ length: concurrency }, worker));
	return progress;
}

async function attempt(run: Run, one: (run: Run) => Promise<unknown>): Promise<ApiError | undefined> {
	for (let tries = 1; ; tries++) {
		try {
			await one(run);
			return undefined;
		} catch (thrown) {
			const error = toApiError(thrown);
			if (error.status !== 429 || tries >= maxAttempts) return error;
			await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 1) * 1000));
		}
	}
}
