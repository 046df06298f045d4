import { toApiError } from "@/api/error";
import type { Drafts } from "./draft";
import type { Editor } from "./editor";
import { patchOf } from "./patch";
import type { Server } from "./server";
import { aboutOf, type Snapshot, snapshotOf } from "./snapshot";

type Workflow = { id: string };

/** Saving writes the open document to its workflow. */
export class Saving {
	private under: Promise<boolean> | null = null;

	constructor(
		private readonly editor: Editor,
		private readonly server: Server,
		private readonly drafts: Drafts,
	) {}

	/** Saves what is edited, and says whether the server has it now. A save under way is waited for. */
	save(): Promise<boolean> {
		this.under ??= this.send().finally(() => {
			this.under = null;
		});
		return this.under;
	}

	private async send(): Promise<boolean> {
		const { broken, dirty, etag, stored, mayWrite } = this.editor.get();
		if (broken) this.editor.refuse("The text has a mistake. Correct it before saving.");
		if (!mayWrite || broken) return false;
		if (!dirty) return true;
		const sent = this.editor.present;
		this.editor.set({ saving: true, saveError: null });
		try {
			const { data, etag: tag } = await this.server.patch(this.editor.id, etag, patchOf(stored, sent));
			this.took(sent, snapshotOf(data).written, tag);
			this.editor.set({ about: aboutOf(data) });
			this.editor.say("Saved.");
			return true;
		} catch (thrown) {
			await this.refused(sent, thrown);
			return false;
		} finally {
			this.editor.set({ saving: false });
		}
	}

	/** What was sent is stored now; edits made meanwhile are still to be saved. */
	private took(sent: Snapshot, source: string | null, etag: string): void {
		this.editor.set({ etag, stored: { ...sent, written: source }, restored: null, conflict: null });
		const { history } = this.editor.get();
		if (history.present === sent) {
			this.editor.set({ history: { ...history, present: { ...sent, written: source }, group: null } });
		}
		this.editor.keep();
	}

	private async refused(sent: Snapshot, thrown: unknown): Promise<void> {
		const error = toApiError(thrown);
		if (error.status === 412) {
			this.editor.set({ conflict: { theirs: await this.server.read(this.editor.id) } });
			return;
		}
		this.editor.set({ saveError: error });
		if (error.fields.length > 0) this.editor.checking.told({ doc: sent.doc, problems: error.fields });
		this.editor.say(`Not saved: ${error.message}`);
	}

	/** Writes what is edited over what somebody else saved. */
	async keepMine(): Promise<boolean> {
		const { conflict } = this.editor.get();
		if (!conflict) return false;
		const { data, etag } = conflict.theirs;
		this.editor.set({ etag, stored: snapshotOf(data), conflict: null, dirty: true });
		return this.save();
	}

	/** Takes what somebody else saved; undo brings the edits back. */
	takeTheirs(): void {
		const { conflict } = this.editor.get();
		if (conflict) this.editor.adopt(conflict.theirs);
	}

	/** Saves what is edited as another workflow and gives that one back. */
	async saveCopy(name: string): Promise<Workflow> {
		const copy = await this.server.create(name);
		const sent = { ...this.editor.present, name };
		await this.server.patch(copy.data.id, copy.etag, patchOf(snapshotOf(copy.data), sent));
		this.drafts.drop(this.editor.id);
		return { id: copy.data.id };
	}

	/** Activates or pauses the workflow. It says nothing about edits that are not saved. */
	async setState(state: "active" | "paused" | "draft"): Promise<void> {
		try {
			const { data, etag } = await this.server.patch(this.editor.id, this.editor.get().etag, { state });
			this.editor.set({ about: aboutOf(data), etag });
		} catch (thrown) {
			await this.refused(this.editor.present, thrown);
			return;
		}
		this.editor.keep();
		this.editor.say(state === "active" ? "The workflow is active." : "The workflow is paused.");
	}
}
