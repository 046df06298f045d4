import type { Schema } from "@/api/client";
import { type Doc, equal } from "@/builder/model";

/** What undo goes back to, and what is saved: the document, its name and the text that somebody wrote for it. */
export interface Snapshot {
	readonly doc: Doc;
	readonly name: string;
	readonly description: string | null;
	/** The text as it was last typed or stored; edits of the document since are not in it. Null if nobody wrote one. */
	readonly written: string | null;
}

/** What the server says about a workflow beside what is edited. */
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

/** Whether two snapshots would be saved as the same thing. */
export function same(a: Snapshot, b: Snapshot): boolean {
	return (
		a === b || (a.name === b.name && a.description === b.description && a.written === b.written && equal(a.doc, b.doc))
	);
}
