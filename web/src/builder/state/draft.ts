import type { Snapshot } from "./snapshot";

/** Edits that were not saved, as they are kept on this computer. */
export interface Draft {
	readonly snapshot: Snapshot;
	/** Text that says no workflow yet. */
	readonly typed?: string;
	/** The state of the server's workflow that they were made on. */
	readonly etag: string;
	readonly at: number;
}

export interface Drafts {
	read(id: string): Draft | null;
	write(id: string, draft: Draft): void;
	drop(id: string): void;
}

const key = (id: string) => `stepmill.draft.${id}`;

/** drafts keeps edits over a reload. A full or forbidden storage loses that, and nothing else. */
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
			// The page still warns before it is left.
		}
	},
	drop(id) {
		try {
			localStorage.removeItem(key(id));
		} catch {
			// Nothing could be kept either.
		}
	},
};
