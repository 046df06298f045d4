import { api, got } from "@/api/client";
import { type ApiError, toApiError } from "@/api/error";
import type { Run } from "./merge";

export type Deed = "cancel" | "retry";

export interface Refusal {
	run: Run;
	error: ApiError;
}

export interface Progress {
	done: number;
	refused: Refusal[];
}

const atOnce = 4;
const patience = 3;

/** able tells which of the runs something can be done to. */
export function able(runs: readonly Run[], deed: Deed): Run[] {
	return runs.filter((run) =>
		deed === "cancel" ? run.status === "running" : run.status === "failed" || run.status === "cancelled",
	);
}

export function call(deed: Deed, run: Run): Promise<unknown> {
	const params = { path: { id: run.id } };
	return deed === "cancel"
		? got(api.POST("/v1/runs/{id}/cancel", { params }))
		: got(api.POST("/v1/runs/{id}/retry", { params }));
}

/**
 * doAll makes one call for each run, a few at a time, and goes on when one is
 * refused. It waits where the server asks for it.
 */
export async function doAll(
	runs: readonly Run[],
	one: (run: Run) => Promise<unknown>,
	tell: (progress: Progress) => void,
	signal: AbortSignal,
): Promise<Progress> {
	const queue = [...runs];
	let progress: Progress = { done: 0, refused: [] };
	const worker = async () => {
		for (let run = queue.shift(); run && !signal.aborted; run = queue.shift()) {
			const error = await attempt(run, one);
			progress = {
				done: progress.done + 1,
				refused: error ? [...progress.refused, { run, error }] : progress.refused,
			};
			tell(progress);
		}
	};
	await Promise.all(Array.from({ length: atOnce }, worker));
	return progress;
}

async function attempt(run: Run, one: (run: Run) => Promise<unknown>): Promise<ApiError | undefined> {
	for (let tries = 1; ; tries++) {
		try {
			await one(run);
			return undefined;
		} catch (thrown) {
			const error = toApiError(thrown);
			if (error.status !== 429 || tries >= patience) return error;
			await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 1) * 1000));
		}
	}
}
