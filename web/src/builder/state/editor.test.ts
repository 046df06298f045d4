import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Schema } from "@/api/client";
import { ApiError } from "@/api/error";
import { addStep, remove } from "@/builder/model";
import type { Draft, Drafts } from "./draft";
import { Editor } from "./editor";
import type { Server, Tagged } from "./server";

const source = "# kept\nname: Orders\nsteps:\n  - id: a # first\n    uses: log.write\n";

function workflow(change: Partial<Schema["Workflow"]> = {}): Schema["Workflow"] {
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
		created_at: "2026-11-15T09:00:00.000Z",
		updated_at: "2026-11-15T09:00:00.000Z",
		...change,
	} as Schema["Workflow"];
}

/** A server that keeps one workflow as the real one does. */
class Fake implements Server {
	now: Tagged;
	readonly patches: { id: string; etag: string; patch: Record<string, unknown> }[] = [];
	refusal: ApiError | null = null;

	constructor(first: Schema["Workflow"]) {
		this.now = { data: first, etag: '"1"' };
	}

	read = async () => this.now;
	create = async (name: string) => ({ data: workflow({ id: "wf_2", name, steps: [], version: 1 }), etag: '"9"' });
	validate = async () => [];
	patch = async (id: string, etag: string, patch: Schema["WorkflowPatch"]) => {
		this.patches.push({ id, etag, patch: patch as Record<string, unknown> });
		if (this.refusal) throw this.refusal;
		if (id === "wf_1" && etag !== this.now.etag) throw new ApiError(412, "version_conflict", "It was changed.");
		const data = { ...this.now.data, ...patch } as Schema["Workflow"];
		const tagged = { data, etag: `"${Number(this.now.etag.slice(1, -1)) + 1}"` };
		if (id === "wf_1") this.now = tagged;
		return tagged;
	};
}

class Kept implements Drafts {
	readonly kept = new Map<string, Draft>();
	read = (id: string) => this.kept.get(id) ?? null;
	write = (id: string, draft: Draft) => void this.kept.set(id, JSON.parse(JSON.stringify(draft)));
	drop = (id: string) => void this.kept.delete(id);
}

let server: Fake;
let drafts: Kept;
const told = vi.fn();

function opened(first = workflow()): Editor {
	server = new Fake(first);
	return new Editor(server.now, { server, drafts, tell: told });
}

const add = (editor: Editor, uses = "data.set") =>
	editor.apply((doc) => addStep(doc, { uses }, { at: "end", block: null }));
const ids = (editor: Editor) => editor.doc.steps.map((step) => step.id);

beforeEach(() => {
	drafts = new Kept();
	told.mockReset();
});

describe("editing", () => {
	it("selects what an operation made, and is dirty until it is undone", () => {
		const editor = opened();
		add(editor);
		expect(editor.get().selected).toEqual(["set"]);
		expect(editor.get().dirty).toBe(true);
		editor.undo();
		expect(editor.get().dirty).toBe(false);
		expect(editor.get().selected).toEqual([]);
		editor.redo();
		expect(ids(editor)).toEqual(["a", "set"]);
	});

	it("tells why something is refused and changes nothing", () => {
		const editor = opened();
		const before = editor.doc;
		editor.apply((doc) => addStep(doc, { uses: "x" }, { at: "after", step: "gone" }));
		expect(told).toHaveBeenCalledOnce();
		expect(editor.doc).toBe(before);
	});

	it("takes typing in one field as one step of undo", () => {
		const editor = opened();
		for (const text of ["H", "He", "Hey"]) editor.setField("/steps/0/with/message", text);
		editor.setField("/steps/0/name", "Other");
		editor.undo();
		editor.undo();
		expect(editor.doc.steps[0]?.with).toBeUndefined();
	});

	it("renames by the field of an id wherever the id is named", () => {
		const editor = opened(
			workflow({
				steps: [
					{ id: "a", uses: "log.write" },
					{ id: "b", uses: "log.write", needs: ["a"] },
				],
			} as Partial<Schema["Workflow"]>),
		);
		editor.setField("/steps/0/id", "first");
		expect(editor.doc.steps[1]?.needs).toEqual(["first"]);
	});

	it("changes nothing for those who may not write", () => {
		const fake = new Fake(workflow());
		const editor = new Editor(fake.now, { server: fake, drafts, tell: told, mayWrite: false });
		add(editor);
		editor.setName("Other");
		editor.setText("steps: []\n");
		expect(editor.get().dirty).toBe(false);
		expect(told).toHaveBeenCalledOnce();
	});
});

describe("text", () => {
	it("is the master while it says a workflow", () => {
		const editor = opened(workflow({ source }));
		editor.setText(`${source}  - id: b\n    uses: log.write\n`);
		expect(ids(editor)).toEqual(["a", "b"]);
		expect(editor.text().startsWith(source)).toBe(true);
	});

	it("leaves the document at what it said before while it has a mistake", () => {
		const editor = opened(workflow({ source }));
		editor.setText(`${source}  - [`);
		expect(editor.get().broken?.errors[0]?.line).toBeGreaterThan(4);
		expect(ids(editor)).toEqual(["a"]);
		add(editor);
		expect(ids(editor)).toEqual(["a"]);
		editor.setText(`${source}  - id: b\n    uses: log.write\n`);
		expect(editor.get().broken).toBeNull();
		expect(ids(editor)).toEqual(["a", "b"]);
	});

	it("keeps comments when a step is added, and has its bytes back when that is undone", () => {
		const editor = opened(workflow({ source }));
		add(editor);
		expect(editor.text().startsWith(source)).toBe(true);
		editor.undo();
		expect(editor.text()).toBe(source);
	});

	it("is not stored for a workflow that nobody wrote a text for", async () => {
		const editor = opened();
		add(editor);
		await editor.saving.save();
		expect(server.patches[0]?.patch).not.toHaveProperty("source");
	});
});

describe("saving", () => {
	it("sends what changed, with the state it was made on and the text", async () => {
		const editor = opened(workflow({ source }));
		add(editor);
		expect(await editor.saving.save()).toBe(true);
		const [sent] = server.patches;
		expect(sent?.etag).toBe('"1"');
		expect(Object.keys(sent?.patch ?? {}).sort()).toEqual(["source", "steps"]);
		expect(editor.get()).toMatchObject({ dirty: false, etag: '"2"' });
	});

	it("sends null for members that are gone", async () => {
		const editor = opened(
			workflow({
				layout: { a: [0, 0], b: [8, 8] },
				settings: { timeout: "1h", concurrency: { key: "x", limit: 2 } },
			} as Partial<Schema["Workflow"]>),
		);
		editor.setField("/settings/timeout", undefined);
		editor.setField("/settings/concurrency/key", undefined);
		editor.apply((doc) => ({ doc: { ...doc, layout: { a: [0, 0] } }, select: [] }));
		await editor.saving.save();
		expect(server.patches[0]?.patch).toEqual({
			settings: { timeout: null, concurrency: { key: null } },
			layout: { b: null },
		});
	});

	it("leaves edits made meanwhile to be saved", async () => {
		const editor = opened();
		add(editor);
		const saved = editor.saving.save();
		add(editor, "flow.stop");
		await saved;
		expect(editor.get().dirty).toBe(true);
		await editor.saving.save();
		expect((server.now.data.steps as { id: string }[]).map((step) => step.id)).toEqual(["a", "set", "stop"]);
	});

	it("shows what the server refuses at its fields", async () => {
		const editor = opened();
		add(editor);
		server.refusal = new ApiError(422, "workflow_invalid", "No.", [
			{ pointer: "/steps/1/with/values", message: "is required" },
		]);
		expect(await editor.saving.save()).toBe(false);
		expect(editor.get().saveError?.code).toBe("workflow_invalid");
		expect(editor.get().problems).toEqual([{ pointer: "/steps/1/with/values", message: "is required", node: "set" }]);
	});
});

describe("a newer state on the server", () => {
	async function met(): Promise<Editor> {
		const editor = opened();
		add(editor);
		server.now = {
			data: workflow({ steps: [{ id: "theirs", uses: "log.write" }], version: 3 } as Partial<Schema["Workflow"]>),
			etag: '"7"',
		};
		expect(await editor.saving.save()).toBe(false);
		expect(editor.get().conflict?.theirs.etag).toBe('"7"');
		return editor;
	}

	it("can be overwritten", async () => {
		const editor = await met();
		expect(await editor.saving.keepMine()).toBe(true);
		expect((server.now.data.steps as { id: string }[]).map((step) => step.id)).toEqual(["a", "set"]);
	});

	it("can be taken, and undo brings the edits back", async () => {
		const editor = await met();
		editor.saving.takeTheirs();
		expect(ids(editor)).toEqual(["theirs"]);
		expect(editor.get()).toMatchObject({ dirty: false, conflict: null, etag: '"7"' });
		editor.undo();
		expect(ids(editor)).toEqual(["a", "set"]);
	});

	it("is left alone by a copy", async () => {
		const editor = await met();
		expect(await editor.saving.saveCopy("Orders (copy)")).toEqual({ id: "wf_2" });
		expect(server.patches.at(-1)).toMatchObject({ id: "wf_2", etag: '"9"' });
		expect((server.now.data.steps as { id: string }[]).map((step) => step.id)).toEqual(["theirs"]);
	});
});

describe("a reload", () => {
	it("brings edits back that were not saved, against the state they were made on", async () => {
		add(opened());
		const newer = new Fake(workflow({ version: 3 }));
		newer.now = { ...newer.now, etag: '"5"' };
		const editor = new Editor(newer.now, { server: newer, drafts });
		expect(ids(editor)).toEqual(["a", "set"]);
		expect(editor.get()).toMatchObject({ dirty: true, etag: '"1"' });
		expect(await editor.saving.save()).toBe(false);
		expect(editor.get().conflict).not.toBeNull();
	});

	it("brings text with a mistake back", () => {
		opened(workflow({ source })).setText(`${source}  - [`);
		const editor = new Editor(server.now, { server, drafts });
		expect(editor.text()).toBe(`${source}  - [`);
		expect(editor.get().broken).not.toBeNull();
	});

	it("finds nothing once all is saved or undone", async () => {
		const editor = opened();
		add(editor);
		expect(drafts.kept.size).toBe(1);
		editor.apply((doc) => remove(doc, ["set"]));
		expect(drafts.kept.size).toBe(0);
		add(editor);
		await editor.saving.save();
		expect(drafts.kept.size).toBe(0);
	});
});
