import { tellSignedOut } from "@/api/client";
import { type LiveEvent, parser } from "./parse";
import { takeSlot } from "./slots";

/** How the stream stands. Since is when the last sign of it came. */
export interface Standing {
	state: "connecting" | "live" | "lost" | "ended";
	since: number;
}

type Handler = (event: LiveEvent) => void;

const firstWait = 1_000;
const longestWait = 30_000;
/** The server sends a comment every 15 seconds; silence longer than this is a dead connection. */
const silence = 45_000;
const rereading = 10_000;

/**
 * Stream reads server-sent events. It is closed while the tab is hidden, and goes
 * on where it was when the tab is seen again. A stream that says `end` is over.
 */
export class Stream {
	standing: Standing = { state: "connecting", since: Date.now() };
	private lastId = "";
	private wait = firstWait;
	private abort?: AbortController;
	private timer?: ReturnType<typeof setTimeout>;
	private readonly handlers = new Map<Handler, (type: string) => boolean>();
	private readonly watchers = new Set<() => void>();
	private users = 0;
	private holds = 0;

	constructor(
		private readonly address: string,
		private readonly page: Document = document,
	) {}

	/** start keeps the stream open until the returned function is called. */
	start(): () => void {
		this.users += 1;
		if (this.users === 1) {
			this.page.addEventListener("visibilitychange", this.look);
			this.look();
		}
		return () => {
			this.users -= 1;
			if (this.users > 0) return;
			this.page.removeEventListener("visibilitychange", this.look);
			this.close();
		};
	}

	on(wants: (type: string) => boolean, handler: Handler): () => void {
		this.handlers.set(handler, wants);
		return () => this.handlers.delete(handler);
	}

	watch(tell: () => void): () => void {
		this.watchers.add(tell);
		return () => this.watchers.delete(tell);
	}

	/** hold closes the stream until the returned function is called. */
	hold(): () => void {
		this.holds += 1;
		this.close();
		return () => {
			this.holds -= 1;
			this.look();
		};
	}

	/** forget drops the position: another person or workspace comes. */
	forget(): void {
		this.lastId = "";
		this.close();
		this.stand("connecting");
		this.look();
	}

	private readonly look = () => {
		const open = this.users > 0 && this.holds === 0 && this.page.visibilityState !== "hidden";
		if (!open) this.close();
		else if (!this.abort && this.standing.state !== "ended") void this.connect();
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
			await this.read(abort);
		} catch {
			// Every end of the stream is answered the same way: by another try.
		}
		if (this.abort !== abort) return;
		this.abort = undefined;
		if (this.standing.state === "ended") return;
		if (this.standing.state !== "lost") this.stand("lost");
		this.timer = setTimeout(this.look, this.wait * (0.75 + Math.random() / 2));
		this.wait = Math.min(this.wait * 2, longestWait);
	}

	/** Until there is a place among the tabs that follow events, what is shown is read again now and then. */
	private async place(signal: AbortSignal): Promise<() => void> {
		const instead = setInterval(() => this.tell({ type: "gap", id: "", data: undefined }), rereading);
		try {
			return await takeSlot(signal);
		} finally {
			clearInterval(instead);
		}
	}

	private async read(abort: AbortController): Promise<void> {
		const leave = await this.place(abort.signal);
		try {
			await this.listen(abort);
		} finally {
			leave();
		}
	}

	private async listen(abort: AbortController): Promise<void> {
		const headers: Record<string, string> = { Accept: "text/event-stream" };
		if (this.lastId) headers["Last-Event-ID"] = this.lastId;
		const response = await fetch(this.address, { headers, signal: abort.signal, credentials: "same-origin" });
		if (response.status === 401) tellSignedOut();
		// Asking again would not change these answers.
		const final =
			response.status === 204 || (response.status >= 400 && response.status < 500 && response.status !== 429);
		if (final) return this.stand("ended");
		if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
		this.wait = firstWait;
		const back = this.standing.state === "lost";
		this.stand("live");
		if (back && !this.lastId) this.tell({ type: "gap", id: "", data: undefined });

		let guard: ReturnType<typeof setTimeout> | undefined;
		const parse = parser(
			(event) => this.tell(event),
			(id) => {
				this.lastId = id;
			},
		);
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		try {
			for (;;) {
				clearTimeout(guard);
				guard = setTimeout(() => void reader.cancel().catch(() => undefined), silence);
				const { done, value } = await reader.read();
				if (done) return;
				this.standing.since = Date.now();
				parse(value);
			}
		} finally {
			clearTimeout(guard);
		}
	}

	private tell(event: LiveEvent): void {
		if (event.type === "end") this.stand("ended");
		for (const [handler, wants] of this.handlers) if (event.type === "gap" || wants(event.type)) handler(event);
	}

	private stand(state: Standing["state"]): void {
		this.standing = { state, since: state === "lost" ? this.standing.since : Date.now() };
		for (const tell of this.watchers) tell();
	}
}
