// The definition of a workflow as plain data. Nothing here is ever changed in
// place: an operation returns a new document that shares what it did not touch.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
	readonly [member: string]: Json;
}

export type Join = "any_ran" | "all" | "always" | "first";

export interface Retry {
	readonly max_attempts?: number;
	readonly initial?: string;
	readonly factor?: number;
	readonly max_delay?: string;
}

export interface Repeat {
	readonly until: string;
	readonly every?: string;
	readonly max?: number;
}

export interface Step {
	readonly id: string;
	readonly name?: string;
	readonly uses?: string;
	readonly with?: JsonObject;
	/** Absent: after the step before it in the list. */
	readonly needs?: readonly string[];
	readonly if?: string | boolean;
	readonly join?: Join;
	readonly on_error?: "fail" | "continue";
	readonly timeout?: string;
	readonly retry?: Retry;
	readonly foreach?: string;
	readonly parallel?: number;
	readonly repeat?: Repeat;
	/** A step with steps of its own is a block. */
	readonly steps?: readonly Step[];
}

export type TriggerType = "manual" | "schedule" | "webhook" | "event" | "poll";

export interface Trigger {
	readonly id: string;
	readonly type: TriggerType;
	readonly [member: string]: Json | undefined;
}

export interface Settings {
	readonly timeout?: string;
	readonly concurrency?: {
		readonly key?: string;
		readonly limit?: number;
		readonly on_limit?: "queue" | "drop" | "cancel_running";
	};
}

/** The part that makes versions. */
export interface Definition {
	readonly triggers: readonly Trigger[];
	readonly steps: readonly Step[];
	readonly settings: Settings;
}

export type Point = readonly [x: number, y: number];

/** Places of top-level steps by id, and of triggers by `@id`. */
export type Layout = Readonly<Record<string, Point>>;

/** What the builder edits: a definition and what is stored beside it. */
export interface Doc extends Definition {
	readonly layout: Layout;
	/** Sample output by step id. */
	readonly pinned: Readonly<Record<string, Json>>;
}

/** The outcome of an operation. A refused one returns the document it was given. */
export interface Edit {
	readonly doc: Doc;
	/** The nodes to select afterwards. */
	readonly select: readonly string[];
	/** Why nothing was done, as a sentence for people. */
	readonly refused?: string;
}

export const emptyDoc: Doc = { triggers: [], steps: [], settings: {}, layout: {}, pinned: {} };

export function refuse(doc: Doc, why: string): Edit {
	return { doc, select: [], refused: why };
}

/** Whether the step is meant to hold steps, rightly or not. */
export function isBlock(step: Step): boolean {
	return step.steps !== undefined || step.foreach !== undefined || step.repeat !== undefined;
}

export function title(step: Step): string {
	return step.name || step.id;
}

/** The node of a trigger, and its key in the layout. */
export function triggerNode(id: string): string {
	return `@${id}`;
}
