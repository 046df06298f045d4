import type { ApiError } from "@/api/error";
import type { History, Place, Problem } from "@/builder/model";
import type { TextError } from "@/builder/text/yaml";
import type { Tagged } from "./server";
import type { About, Snapshot } from "./snapshot";

/** How the document is looked at. */
export type View = "canvas" | "outline" | "yaml";

/** What stands at the right. */
export type Side = "settings" | "problems" | "versions";

/** A field that should get the focus; null is the first that is required and empty. */
export interface Target {
	readonly node: string | null;
	readonly field: string | null;
	/** Counts, so that the same field can be asked for again. */
	readonly count: number;
}

/** Text that says no workflow yet. The canvas stays as it was before it. */
export interface Broken {
	readonly text: string;
	readonly errors: readonly TextError[];
}

/** Somebody else saved first. */
export interface Conflict {
	readonly theirs: Tagged;
}

/** Something that is about to be added, and where. */
export type Adding = { readonly kind: "step"; readonly place: Place } | { readonly kind: "trigger" };

/** A question that an operation asks before it is done. */
export type Question =
	| { readonly kind: "rename"; readonly node: string }
	| { readonly kind: "connect"; readonly from: string }
	| { readonly kind: "into"; readonly nodes: readonly string[] }
	| { readonly kind: "split"; readonly place: Place }
	| { readonly kind: "find" };

export interface State {
	readonly about: About;
	readonly etag: string;
	readonly history: History<Snapshot>;
	/** What the server has. */
	readonly stored: Snapshot;
	readonly dirty: boolean;
	/** When edits were made that a reload brought back, null if it brought none. */
	readonly restored: number | null;
	/** Nodes: a step by its id, a trigger by `@id`. The last one is the one that keys move from. */
	readonly selected: readonly string[];
	/** The edge that is selected, by its id "from->to". Never together with nodes. */
	readonly edge: string | null;
	readonly broken: Broken | null;
	readonly problems: readonly Problem[];
	readonly checking: boolean;
	readonly saving: boolean;
	readonly saveError: ApiError | null;
	readonly conflict: Conflict | null;
	readonly mayWrite: boolean;
	readonly target: Target | null;
	readonly adding: Adding | null;
	readonly question: Question | null;
	readonly view: View;
	readonly side: Side;
	/** Whether the test panel is open. */
	readonly testing: boolean;
	/** The latest sentence for screen readers. */
	readonly said: string;
}
