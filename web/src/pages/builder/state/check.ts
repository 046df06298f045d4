import { toApiError } from "@/api/error";
import { type Doc, type Inputs, localProblems, mergeProblems, type Verdict } from "@/shared/workflow/model";
import type { OpenDocument } from "./open-document";
import type { Server } from "./server";

const pause = 400;

/** Checking looks for problems whenever the definition changes: first locally, then on the server. */
export class Checking {
	private lastDoc: Doc | undefined;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private call: AbortController | undefined;
	private verdict: Verdict | null = null;
	private inputs: Inputs = () => undefined;

	constructor(
		private readonly editor: OpenDocument,
		private readonly server: Server,
	) {}

	/** Starts checking until the returned function is called. */
	start(): () => void {
		this.lastDoc = undefined;
		this.onChange();
		const stop = this.editor.watch(() => this.onChange());
		return () => {
			stop();
			this.call?.abort();
			clearTimeout(this.timer);
		};
	}

	/** Sets the input schemas of the actions once they are known. */
	setInputs(inputs: Inputs): void {
		this.inputs = inputs;
		this.publish();
	}

	/** Sets the problems that the server reported when saving. */
	setVerdict(verdict: Verdict): void {
		this.verdict = verdict;
		this.publish();
	}

	private onChange(): void {
		const { doc } = this.editor;
		const { lastDoc } = this;
		if (doc === lastDoc) return;
		this.lastDoc = doc;
		if (
			lastDoc &&
			lastDoc.steps === doc.steps &&
			lastDoc.triggers === doc.triggers &&
			lastDoc.settings === doc.settings
		)
			return;
		this.call?.abort();
		clearTimeout(this.timer);
		this.publish();
		if (this.editor.get().mayWrite) this.timer = setTimeout(() => void this.validate(doc), pause);
	}

	private async validate(doc: Doc): Promise<void> {
		this.call = new AbortController();
		const { signal } = this.call;
		this.editor.set({ checking: true });
		try {
			this.verdict = { doc, ...(await this.server.validate(this.editor.id, doc, signal)) };
		} catch (thrown) {
			// A definition that cannot be parsed returns 400, with the affected fields.
			const { status, fields } = toApiError(thrown);
			if (status === 400) this.verdict = { doc, problems: fields, warnings: [] };
		}
		if (signal.aborted) return;
		this.editor.set({ checking: false });
		this.publish();
	}

	private publish(): void {
		const { doc } = this.editor;
		const { verdict } = this;
		this.editor.set({
			problems: mergeProblems(doc, localProblems(doc, this.inputs), verdict),
			warnings: mergeProblems(doc, [], verdict && { doc: verdict.doc, problems: verdict.warnings }),
		});
	}
}
