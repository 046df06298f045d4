import { notifySignedOut } from "@/api/client";
import { type LiveEvent, parser } from "./parse";
import { acquireSlot } from "./slots";

/** The status of the connection. `since` is the time of the last sign of life. */
export interface ConnectionStatus {
	state: "connecting" | "live" | "lost" | "ended";
	since: number;
}

type Handler = (event: LiveEvent) => void;

const initialDelay = 1_000;
const maxDelay = 30_000;
/** The server sends a comment every 15 seconds, so a longer silence means that the connection is dead. */
const silenceLimit = 45_000;
const refreshInterval = 10_000;

/**
 * Stream reads server-sent events. It disconnects while the tab is hidden and resumes from
 * the last event when the tab is visible again. A stream that sends `end` is finished.
 */
export class Stream {
	status: ConnectionStatus = { state: "connecting", since: Date.now() };
	private lastId = "";
	private delay = initialDelay;
	private abort?: AbortController;
	private timer?: ReturnType<typeof setTimeout>;
	private readonly handlers = new Map<Handler, (type: string) => boolean>();
	private readonly listeners = new Set<() => void>();
	private users = 0;
	private pauses = 0;

	constructor(
		private readonly address: string,
		private readonly page: Document = document,
	) {}

	/** start keeps the stream open until the returned function is called. */
	start(): () => void {
		this.users += 1;
		if (this.users === 1) {
			this.page.addEventListener("visibilitychange", this.update);
			this.update();
		}
		return () => {
			this.users -= 1;
			if (this.users > 0) return;
			this.page.removeEventListener("visibilitychange", this.update);
			this.close();
		};
	}

	on(wants: (type: string) => boolean, handler: Handler): () => void {
		this.handlers.set(handler, wants);
		return () => this.handlers.delete(handler);
	}

	watch(listener: () => void): () => void {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	}

	/** pause closes the stream until the returned function is called. */
	pause(): () => void {
		this.pauses += 1;
		this.close();
		return () => {
			this.pauses -= 1;
			this.update();
		};
	}

	/** reset drops the position, because the user or the workspace has changed. */
	reset(): void {
		this.lastId = "";
		this.close();
		this.setStatus("connecting");
		this.update();
	}

	private readonly update = () => {
		const open = this.users > 0 && this.pauses === 0 && this.page.visibilityState !== "hidden";
		if (!open) this.close();
		else if (!this.abort && this.status.state !== "ended") void this.connect();
	};

	private close(): void {
		this.abort?.abort();
		this.abort = undefined;
		clearTimeout(this.timer);
	}

	private async connect(): Promise<void> {
		clearTimeout(this.timer);
		const abort = new AbortController();
		this.abort = abort;
		try {
			await this.readWithSlot(abort);
		} catch {
			// However the stream ends, reconnect.
		}
		if (this.abort !== abort) return;
		this.abort = undefined;
		if (this.status.state === "ended") return;
		if (this.status.state !== "lost") this.setStatus("lost");
		this.timer = setTimeout(this.update, this.delay * (0.75 + Math.random() / 2));
		this.delay = Math.min(this.delay * 2, maxDelay);
	}

	/**
	 * While this tab waits for a slot, it refetches periodically. The slots are held by
	 * connected tabs, so the server is up and the connection does not count as lost.
	 */
	private async waitForSlot(signal: AbortSignal): Promise<() => void> {
		const instead = setInterval(() => {
			if (this.status.state === "lost") this.setStatus("connecting");
			this.emit({ type: "gap", id: "", data: undefined });
		}, refreshInterval);
		try {
			return await acquireSlot(signal);
		} finally {
			clearInterval(instead);
		}
	}

	private async readWithSlot(abort: AbortController): Promise<void> {
		const leave = await this.waitForSlot(abort.signal);
		try {
			await this.readEvents(abort);
		} finally {
			leave();
		}
	}

	private async readEvents(abort: AbortController): Promise<void> {
		const headers: Record<string, string> = { Accept: "text/event-stream" };
		if (this.lastId) headers["Last-Event-ID"] = this.lastId;
		const response = await fetch(this.address, { headers, signal: abort.signal, credentials: "same-origin" });
		if (response.status === 401) notifySignedOut();
		// Retrying would not change these responses.
		const final =
			response.status === 204 || (response.status >= 400 && response.status < 500 && response.status !== 429);
		if (final) return this.setStatus("ended");
		if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
		this.delay = initialDelay;
		this.setStatus("live");
		// Without a position the stream starts now, so events since the data was loaded are missing.
		if (!this.lastId) this.emit({ type: "gap", id: "", data: undefined });

		let guard: ReturnType<typeof setTimeout> | undefined;
		const parse = parser(
			(event) => this.emit(event),
			(id) => {
				this.lastId = id;
			},
		);
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		try {
			for (;;) {
				clearTimeout(guard);
				guard = setTimeout(() => void reader.cancel().catch(() => undefined), silenceLimit);
				const { done, value } = await reader.read();
				if (done) return;
				this.status.since = Date.now();
				parse(value);
			}
		} finally {
			clearTimeout(guard);
		}
	}

	private emit(event: LiveEvent): void {
		if (event.type === "end") this.setStatus("ended");
		for (const [handler, wants] of this.handlers) if (event.type === "gap" || wants(event.type)) handler(event);
	}

	private setStatus(state: ConnectionStatus["state"]): void {
		this.status = { state, since: state === "lost" ? this.status.since : Date.now() };
		for (const listener of this.listeners) listener();
	}
}
