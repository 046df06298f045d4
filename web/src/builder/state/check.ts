import { toApiError } from "@/api/error";
import { type Doc, type Inputs, localProblems, mergeProblems, type Verdict } from "@/builder/model";
import type { Editor } from "./editor";
import type { Server } from "./server";

const pause = 400;

/** Checking looks for problems whenever the definition has changed: at once what is plain to see, then what the server says. */
export class Checking {
	private seen: Doc | undefined;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private call: AbortController | undefined;
	private verdict: Verdict | null = null;
	private inputs: Inputs = () => undefined;

	constructor(
		private readonly editor: Editor,
		private readonly server: Server,
	) {}

	/** Begins, and ends with what it returns. */
	start(): () => void {
		this.seen = undefined;
		this.look();
		const stop = this.editor.watch(() => this.look());
		return () => {
			stop();
			this.call?.abort();
			clearTimeout(this.timer);
		};
	}

	/** Tells what the actions take, once that is known. */
	know(inputs: Inputs): void {
		this.inputs = inputs;
		this.publish();
	}

	/** What the server said of a document when it was saved. */
	told(verdict: Verdict): void {
		this.verdict = verdict;
		this.publish();
	}

	private look(): void {
		const { doc } = this.editor;
		const { seen } = this;
		if (doc === seen) return;
		this.seen = doc;
		if (seen && seen.steps === doc.steps && seen.triggers === doc.triggers && seen.settings === doc.settings) return;
		this.call?.abort();
		clearTimeout(this.timer);
		this.publish();
		if (this.editor.get().mayWrite) this.timer = setTimeout(() => void this.ask(doc), pause);
	}

	private async ask(doc: Doc): Promise<void> {
		this.call = new AbortController();
		const { signal } = this.call;
		this.editor.set({ checking: true });
		try {
			this.verdict = { doc, problems: await this.server.validate(this.editor.id, doc, signal) };
		} catch (thrown) {
			// A definition that cannot even be read is refused, with the fields that are to blame.
			const { status, fields } = toApiError(thrown);
			if (status === 400) this.verdict = { doc, problems: fields };
		}
		if (signal.aborted) return;
		this.editor.set({ checking: false });
		this.publish();
	}

	private publish(): void {
		const { doc } = this.editor;
		this.editor.set({ problems: mergeProblems(doc, localProblems(doc, this.inputs), this.verdict) });
	}
}
