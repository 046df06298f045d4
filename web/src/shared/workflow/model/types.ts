import type { concurrencyOnLimitValues, stepJoinValues, triggerTypeValues } from "@/api/values";

// The definition of a workflow as immutable data: operations return a new document that shares its unchanged parts.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
	readonly [member: string]: Json;
}

export type Join = (typeof stepJoinValues)[number];

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
	/** The ids of steps, or paths out of them. Absent: runs after the previous step in the list. */
	readonly needs?: readonly string[];
	readonly if?: string | boolean;
	readonly join?: Join;
	readonly on_error?: "fail" | "continue";
	/** Left out of the run. */
	readonly disabled?: boolean;
	readonly timeout?: string;
	readonly retry?: Retry;
	readonly mask?: readonly string[];
	/** The name of the connection that authenticates the step. */
	readonly connection?: string;
	readonly on_broken_connection?: "wait" | "fail";
	readonly foreach?: string;
	readonly parallel?: number;
	readonly repeat?: Repeat;
	/** A step with nested steps is a block. */
	readonly steps?: readonly Step[];
}

/** A step to add; its id is derived from its name unless given. */
export type NewStep = Omit<Step, "id" | "needs"> & { readonly id?: string };

/** The types of Stepmill itself. */
export type OwnTriggerType = (typeof triggerTypeValues)[number];

/** Services have types of their own, such as gmail.new_message. */
export type ServiceTriggerType = `${string}.${string}`;

export type TriggerType = OwnTriggerType | ServiceTriggerType;

export const isServiceTrigger = (type: string): type is ServiceTriggerType => type.includes(".");

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
		readonly on_limit?: (typeof concurrencyOnLimitValues)[number];
	};
}

/** The versioned part. */
export interface Definition {
	readonly triggers: readonly Trigger[];
	readonly steps: readonly Step[];
	readonly settings: Settings;
}

export type Point = readonly [x: number, y: number];

/** Positions of top-level steps by id, and of triggers by `@id`. */
export type Layout = Readonly<Record<string, Point>>;

/** What the builder edits: a definition and what is stored with it. */
export interface Doc extends Definition {
	readonly layout: Layout;
	/** Sample output by step id. */
	readonly pinned: Readonly<Record<string, Json>>;
}

/** The result of an operation. A rejected one returns the document unchanged. */
export interface Edit {
	readonly doc: Doc;
	/** The nodes to select afterwards. */
	readonly select: readonly string[];
	/** The nodes whose id changed, by their previous id. */
	readonly renamed?: ReadonlyMap<string, string>;
	/** Why the operation was rejected, as a sentence for users. */
	readonly rejected?: string;
}

export const emptyDoc: Doc = { triggers: [], steps: [], settings: {}, layout: {}, pinned: {} };

export function rejectEdit(doc: Doc, why: string): Edit {
	return { doc, select: [], rejected: why };
}

/** Whether the step is meant to contain steps, even if it is invalid. */
export function isBlock(step: Step): boolean {
	return step.steps !== undefined || step.foreach !== undefined || step.repeat !== undefined;
}

export function title(step: Step): string {
	return step.name || step.id;
}

/** The node of a trigger, also used as its key in the layout. */
export function triggerNode(id: string): string {
	return `@${id}`;
}
