import type { ApiError } from "@/api/error";
import type { History, Place, Problem } from "@/shared/workflow/model";
import type { TextError } from "@/shared/workflow/text/yaml";
import type { Tagged } from "./server";
import type { About, Snapshot } from "./snapshot";

/** How the document is shown. */
export type View = "canvas" | "outline" | "yaml";

/** The content of the side panel. */
export type Side = "settings" | "problems" | "versions";

/** A field that should get the focus; null means the first empty required one. */
export interface Target {
	readonly node: string | null;
	readonly field: string | null;
	/** Incremented so that the same field can be requested again. */
	readonly count: number;
}

/** Text that is not a valid workflow. The canvas shows the last valid one. */
export interface Broken {
	readonly text: string;
	readonly errors: readonly TextError[];
}

/** Someone else saved first. */
export interface Conflict {
	readonly theirs: Tagged;
}

/** What is being added, and where. */
export type Adding = { readonly kind: "step"; readonly place: Place } | { readonly kind: "trigger" };

/** A dialog that an operation needs before it runs. */
export type Question =
	| { readonly kind: "rename"; readonly node: string }
	| { readonly kind: "connect"; readonly from: string }
	| { readonly kind: "into"; readonly nodes: readonly string[] }
	| { readonly kind: "test"; readonly step: string }
	| { readonly kind: "find" };

export interface State {
	readonly about: About;
	readonly etag: string;
	readonly history: History<Snapshot>;
	/** What the server has stored. */
	readonly stored: Snapshot;
	readonly dirty: boolean;
	/** When the restored edits were made; null if none were restored. */
	readonly restored: number | null;
	/** Nodes: a step by its id, a trigger by `@id`. Keys move from the last one. */
	readonly selected: readonly string[];
	/** The selected edge by its id "from->to". Never set together with nodes. */
	readonly edge: string | null;
	readonly broken: Broken | null;
	readonly problems: readonly Problem[];
	/** What will not do what it should, such as an address that is left from an example. */
	readonly warnings: readonly Problem[];
	readonly checking: boolean;
	readonly saving: boolean;
	readonly saveError: ApiError | null;
	readonly conflict: Conflict | null;
	readonly mayWrite: boolean;
	readonly target: Target | null;
	/** The offset to move the cursor to; null once done. */
	readonly spot: number | null;
	readonly adding: Adding | null;
	readonly question: Question | null;
	readonly view: View;
	readonly side: Side;
	/** Whether the panel is open on narrow screens, where it is a sheet. */
	readonly details: boolean;
	/** Whether the test panel is open. */
	readonly testing: boolean;
	/** The latest announcement for screen readers. */
	readonly said: string;
}
