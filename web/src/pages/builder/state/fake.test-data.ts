import type { Schema } from "@/api/client";
import { ApiError } from "@/api/error";
import type { Draft, Drafts } from "./draft";
import type { Server, Tagged } from "./server";

/** workflow returns a stored workflow with one step. */
export function workflow(change: Partial<Schema["Workflow"]> = {}): Schema["Workflow"] {
	return {
		id: "wf_1",
		name: "Orders",
		description: null,
		state: "draft",
		version: 2,
		triggers: [],
		steps: [{ id: "a", uses: "log.write" }],
		settings: {},
		layout: {},
		pinned: {},
		source: null,
		source_stale: false,
		warnings: [],
		created_at: "2026-11-15T09:00:00.000Z",
		updated_at: "2026-11-15T09:00:00.000Z",
		...change,
	} as Schema["Workflow"];
}

/** FakeServer stores one workflow like the real server does. */
export class FakeServer implements Server {
	now: Tagged;
	readonly patches: { id: string; etag: string; patch: Record<string, unknown> }[] = [];
	error: ApiError | null = null;

	constructor(first: Schema["Workflow"]) {
		this.now = { data: first, etag: '"1"' };
	}

	read = async () => this.now;
	readonly imports: Schema["WorkflowImport"][] = [];
	import = async (body: Schema["WorkflowImport"]) => {
		this.imports.push(body);
		return workflow({ id: "wf_2", version: 1, ...(body as Partial<Schema["Workflow"]>) });
	};
	validate = async () => ({ problems: [], warnings: [] });
	patch = async (id: string, etag: string, patch: Schema["WorkflowPatch"]) => {
		this.patches.push({ id, etag, patch: patch as Record<string, unknown> });
		if (this.error) throw this.error;
		if (id === "wf_1" && etag !== this.now.etag) throw new ApiError(412, "version_conflict", "It was changed.");
		const data = { ...this.now.data, ...patch } as Schema["Workflow"];
		const tagged = { data, etag: `"${Number(this.now.etag.slice(1, -1)) + 1}"` };
		if (id === "wf_1") this.now = tagged;
		return tagged;
	};
}

/** MemoryDrafts stores drafts in memory, as JSON like localStorage. */
export class MemoryDrafts implements Drafts {
	readonly kept = new Map<string, Draft>();
	read = (id: string) => this.kept.get(id) ?? null;
	write = (id: string, draft: Draft) => void this.kept.set(id, JSON.parse(JSON.stringify(draft)));
	drop = (id: string) => void this.kept.delete(id);
}
