import { ApiError, toApiError } from "./error";

const initialDelay = 2_000;
const maxDelay = 30_000;

/** isUnreachable reports whether a call failed because the server could not be reached, directly or behind a proxy. */
export function isUnreachable(thrown: unknown): boolean {
	const { status, code } = toApiError(thrown);
	return (
		code === "unreachable" || code === "page_unreachable" || (status >= 502 && status <= 504 && code === "unexpected")
	);
}

/** isReachable reports whether the server responds. */
export async function isReachable(): Promise<boolean> {
	try {
		return (await globalThis.fetch("/healthz", { cache: "no-store" })).ok;
	} catch {
		return false;
	}
}

/**
 * Recovery retries failed work once the server is reachable again. It probes the server
 * with exponential backoff and keeps backing off if the retries fail too.
 */
export class Recovery {
	private readonly retries = new Set<() => void>();
	private timer?: ReturnType<typeof setTimeout>;
	private delay = initialDelay;
	private recoveredAt = Number.NEGATIVE_INFINITY;

	constructor(private readonly probe: () => Promise<boolean> = isReachable) {}

	/** add calls retry when the server is back, unless the returned function is called first. */
	add(retry: () => void): () => void {
		this.retries.add(retry);
		if (this.timer === undefined) {
			if (Date.now() - this.recoveredAt > maxDelay) this.delay = initialDelay;
			this.schedule();
		}
		return () => {
			this.retries.delete(retry);
			if (this.retries.size === 0) this.stop();
		};
	}

	/** recover runs the pending retries. Call it when the server is known to be reachable. */
	recover(): void {
		this.stop();
		this.recoveredAt = Date.now();
		const due = [...this.retries];
		this.retries.clear();
		for (const retry of due) retry();
	}

	private schedule(): void {
		this.timer = setTimeout(() => void this.check(), this.delay);
		this.delay = Math.min(this.delay * 2, maxDelay);
	}

	private async check(): Promise<void> {
		const asked = this.timer;
		const answers = await this.probe();
		if (this.timer !== asked || this.retries.size === 0) return;
		if (answers) this.recover();
		else this.schedule();
	}

	private stop(): void {
		clearTimeout(this.timer);
		this.timer = undefined;
	}
}

export const recovery = new Recovery();

/**
 * loadChunk loads a code chunk. If that fails because the server is unreachable, the error
 * says so. After an upgrade the old chunks no longer exist, and the router reloads the
 * page.
 */
export async function loadChunk<T>(load: () => Promise<T>): Promise<T> {
	try {
		return await load();
	} catch (thrown) {
		if (await isReachable()) throw thrown;
		throw new ApiError(0, "page_unreachable", "The server could not be reached.");
	}
}
