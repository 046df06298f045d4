import type { Schema } from "@/api/client";
import { type Doc, equal } from "@/shared/workflow/model";

/** A state for undo and saving: the document, its name and its source text. */
export interface Snapshot {
	readonly doc: Doc;
	readonly name: string;
	readonly description: string | null;
	/** The text as last typed or stored, without later edits of the document. Null if there is no text. */
	readonly written: string | null;
}

/** A workflow without content. */
export const nothing: Snapshot = {
	doc: { triggers: [], steps: [], settings: {}, layout: {}, pinned: {} },
	name: "",
	description: null,
	written: null,
};

/** Server-side facts about the workflow that are not edited here. */
export interface About {
	readonly id: string;
	readonly state: Schema["WorkflowState"];
	readonly version: number;
	readonly updatedAt: string;
}

export function snapshotOf(workflow: Schema["Workflow"]): Snapshot {
	const { triggers, steps, settings, layout, pinned, name, description, source } = workflow;
	const doc = { triggers, steps, settings, layout, pinned: pinned ?? {} } as unknown as Doc;
	return { doc, name, description, written: source ?? null };
}

export function aboutOf(workflow: Schema["Workflow"]): About {
	return {
		id: workflow.id,
		state: workflow.state,
		version: workflow.version,
		updatedAt: workflow.updated_at,
	};
}

/** Whether two snapshots would be saved as the same content. */
export function same(a: Snapshot, b: Snapshot): boolean {
	return (
		a === b || (a.name === b.name && a.description === b.description && a.written === b.written && equal(a.doc, b.doc))
	);
}
