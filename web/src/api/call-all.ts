import { type ApiError, toApiError } from "./error";

export interface Progress<T> {
	done: number;
	failed: { item: T; error: ApiError }[];
}

const concurrency = 4;
const maxAttempts = 3;

/** callAll makes one call per item, a few at a time, and continues if one fails. It honors Retry-After. */
export async function callAll<T>(
	items: readonly T[],
	one: (item: T) => Promise<unknown>,
	onProgress: (progress: Progress<T>) => void,
	signal: AbortSignal,
): Promise<Progress<T>> {
	const queue = [...items];
	let progress: Progress<T> = { done: 0, failed: [] };
	const worker = async () => {
		for (let item = queue.shift(); item !== undefined && !signal.aborted; item = queue.shift()) {
			const error = await attempt(item, one);
			progress = {
				done: progress.done + 1,
				failed: error ? [...progress.failed, { item, error }] : progress.failed,
			};
			onProgress(progress);
		}
	};
	await Promise.all(Array.from({ length: concurrency }, worker));
	return progress;
}

async function attempt<T>(item: T, one: (item: T) => Promise<unknown>): Promise<ApiError | undefined> {
	for (let tries = 1; ; tries++) {
		try {
			await one(item);
			return undefined;
		} catch (thrown) {
			const error = toApiError(thrown);
			if (error.status !== 429 || tries >= maxAttempts) return error;
			await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 1) * 1000));
		}
	}
}
