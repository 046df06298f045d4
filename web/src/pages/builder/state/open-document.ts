import type { Doc } from "@/shared/workflow/model";
import type { Tagged } from "./server";
import type { Snapshot } from "./snapshot";
import type { State } from "./state";

/** OpenDocument is the part of the editor that saving and checking use. It avoids an import cycle. */
export interface OpenDocument {
	readonly id: string;
	readonly doc: Doc;
	readonly present: Snapshot;
	get(): State;
	set(change: Partial<State>): void;
	watch(listener: () => void): () => void;
	reject(why: string): void;
	announce(sentence: string): void;
	saveDraft(): void;
	adopt(loaded: Tagged): void;
	/** Replaces earlier names of connections with their present ones. */
	renameConnections(): void;
}
