import type { Snapshot } from "./snapshot";

/** Unsaved edits, as stored in the browser. */
export interface Draft {
	readonly snapshot: Snapshot;
	/** Text that is not a valid workflow yet. */
	readonly typed?: string;
	/** The ETag of the workflow that the edits are based on. */
	readonly etag: string;
	readonly at: number;
}

export interface Drafts {
	read(id: string): Draft | null;
	write(id: string, draft: Draft): void;
	drop(id: string): void;
}

const key = (id: string) => `stepmill.draft.${id}`;

/** drafts preserves edits across reloads. If storage is full or blocked, only that is lost. */
export const drafts: Drafts = {
	read(id) {
		try {
			const text = localStorage.getItem(key(id));
			return text === null ? null : (JSON.parse(text) as Draft);
		} catch {
			return null;
		}
	},
	write(id, draft) {
		try {
			localStorage.setItem(key(id), JSON.stringify(draft));
		} catch {
			// The page still warns before the user leaves.
		}
	},
	drop(id) {
		try {
			localStorage.removeItem(key(id));
		} catch {
			// Nothing could be stored either.
		}
	},
};
