import { toApiError } from "@/api/error";
import type { Checking } from "./check";
import type { Drafts } from "./draft";
import type { OpenDocument } from "./open-document";
import { patchOf } from "./patch";
import type { Server } from "./server";
import { aboutOf, nothing, type Snapshot, snapshotOf } from "./snapshot";

type Workflow = { id: string };

/** Saving writes the open document to its workflow. */
export class Saving {
	private inFlight: Promise<boolean> | null = null;

	constructor(
		private readonly editor: OpenDocument,
		private readonly server: Server,
		private readonly drafts: Drafts,
		private readonly checking: Pick<Checking, "setVerdict">,
	) {}

	/** Saves the edits and reports whether they are stored. Concurrent calls share one request. */
	save(): Promise<boolean> {
		this.inFlight ??= this.send().finally(() => {
			this.inFlight = null;
		});
		return this.inFlight;
	}

	private async send(): Promise<boolean> {
		const { broken, dirty, etag, stored, mayWrite } = this.editor.get();
		if (broken) this.editor.reject("The YAML has an error. Fix it before saving.");
		if (!mayWrite || broken) return false;
		if (!dirty) return true;
		this.editor.renameConnections();
		const sent = this.editor.present;
		this.editor.set({ saving: true, saveError: null });
		try {
			const { data, etag: tag } = await this.server.patch(this.editor.id, etag, patchOf(stored, sent));
			this.onSaved(sent, snapshotOf(data).written, tag);
			this.editor.set({ about: aboutOf(data) });
			this.editor.announce("Saved.");
			return true;
		} catch (thrown) {
			await this.onError(sent, thrown);
			return false;
		} finally {
			this.editor.set({ saving: false });
		}
	}

	/** What was sent is now stored; later edits remain unsaved. */
	private onSaved(sent: Snapshot, source: string | null, etag: string): void {
		this.editor.set({ etag, stored: { ...sent, written: source }, restored: null, conflict: null });
		const { history } = this.editor.get();
		if (history.present === sent) {
			this.editor.set({ history: { ...history, present: { ...sent, written: source }, group: null } });
		}
		this.editor.saveDraft();
	}

	private async onError(sent: Snapshot, thrown: unknown): Promise<void> {
		const error = toApiError(thrown);
		if (error.status === 412) {
			this.editor.set({ conflict: { theirs: await this.server.read(this.editor.id) } });
			return;
		}
		this.editor.set({ saveError: error });
		if (error.fields.length > 0) this.checking.setVerdict({ doc: sent.doc, problems: error.fields, warnings: [] });
		this.editor.announce(`Not saved: ${error.message}`);
	}

	/** Overwrites what someone else saved with the local edits. */
	async keepMine(): Promise<boolean> {
		const { conflict } = this.editor.get();
		if (!conflict) return false;
		const { data, etag } = conflict.theirs;
		this.editor.set({ etag, stored: snapshotOf(data), conflict: null, dirty: true });
		return this.save();
	}

	/** Adopts what someone else saved; undo restores the local edits. */
	takeTheirs(): void {
		const { conflict } = this.editor.get();
		if (conflict) this.editor.adopt(conflict.theirs);
	}

	/** Saves the edits as a new workflow and returns it. */
	async saveCopy(name: string): Promise<Workflow> {
		const { id } = await this.server.import(patchOf(nothing, { ...this.editor.present, name }));
		this.drafts.drop(this.editor.id);
		return { id };
	}

	/** Activates or pauses the workflow. Unsaved edits are not affected. */
	async setState(state: "active" | "paused" | "draft"): Promise<void> {
		try {
			const { data, etag } = await this.server.patch(this.editor.id, this.editor.get().etag, { state });
			this.editor.set({ about: aboutOf(data), etag });
		} catch (thrown) {
			await this.onError(this.editor.present, thrown);
			return;
		}
		this.editor.saveDraft();
		this.editor.announce(state === "active" ? "The workflow is active." : "The workflow is paused.");
	}
}
