import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Schema } from "@/api/client";
import { ApiError } from "@/api/error";
import { addStep, remove } from "@/shared/workflow/model";
import { Editor } from "./editor";
import { FakeServer, MemoryDrafts, workflow } from "./fake.test-data";

const source = "# kept\nname: Orders\nsteps:\n  - id: a # first\n    uses: log.write\n";

let server: FakeServer;
let drafts: MemoryDrafts;
const told = vi.fn();

function opened(first = workflow()): Editor {
	server = new FakeServer(first);
	return new Editor(server.now, { server, drafts, onRejected: told });
}

const add = (editor: Editor, uses = "data.set") =>
	editor.apply((doc) => addStep(doc, { uses }, { at: "end", block: null }));
const ids = (editor: Editor) => editor.doc.steps.map((step) => step.id);

beforeEach(() => {
	drafts = new MemoryDrafts();
	told.mockReset();
});

describe("editing", () => {
	it("selects new steps, and is dirty until undone", () => {
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

	it("reports a rejected operation and changes nothing", () => {
		const editor = opened();
		const before = editor.doc;
		editor.apply((doc) => addStep(doc, { uses: "x" }, { at: "after", step: "gone" }));
		expect(told).toHaveBeenCalledOnce();
		expect(editor.doc).toBe(before);
	});

	it("groups typing in one field into one undo step", () => {
		const editor = opened();
		for (const text of ["H", "He", "Hey"]) editor.setField("/steps/0/with/message", text);
		editor.setField("/steps/0/name", "Other");
		editor.undo();
		editor.undo();
		expect(editor.doc.steps[0]?.with).toBeUndefined();
	});

	it("changing an id updates all references", () => {
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

	it("changes nothing without write access", () => {
		const fake = new FakeServer(workflow());
		const editor = new Editor(fake.now, { server: fake, drafts, onRejected: told, mayWrite: false });
		add(editor);
		editor.setName("Other");
		editor.setText("steps: []\n");
		expect(editor.get().dirty).toBe(false);
		expect(told).toHaveBeenCalledOnce();
	});
});

describe("text", () => {
	it("updates the document while it is valid", () => {
		const editor = opened(workflow({ source }));
		editor.setText(`${source}  - id: b\n    uses: log.write\n`);
		expect(ids(editor)).toEqual(["a", "b"]);
		expect(editor.text().startsWith(source)).toBe(true);
	});

	it("does not change the document while it is invalid", () => {
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

	it("keeps comments when a step is added, and restores its bytes on undo", () => {
		const editor = opened(workflow({ source }));
		add(editor);
		expect(editor.text().startsWith(source)).toBe(true);
		editor.undo();
		expect(editor.text()).toBe(source);
	});

	it("keeps comments when a step is renamed", () => {
		const text = [
			"# kept",
			"steps:",
			"  - id: a # first",
			"    # writes",
			"    uses: log.write",
			"    with: {message: hi} # said",
			"  - id: b",
			"    needs: [a] # after it",
			"    if: steps.a.status == 'succeeded' # only then",
			"    uses: log.write",
			"",
		].join("\n");
		const steps = [
			{ id: "a", uses: "log.write", with: { message: "hi" } },
			{ id: "b", needs: ["a"], if: "steps.a.status == 'succeeded'", uses: "log.write" },
		];
		const editor = opened(workflow({ source: text, steps } as Partial<Schema["Workflow"]>));
		editor.setField("/steps/0/name", "Greet");
		editor.setField("/steps/0/uses", "data.set");
		editor.setField("/steps/0/id", "greet");
		expect(editor.text()).toBe(
			text
				.replace("id: a # first", "id: greet # first\n    name: Greet")
				.replace("uses: log.write\n    with", "uses: data.set\n    with")
				.replace("[a]", "[greet]")
				.replace("steps.a.", "steps.greet."),
		);
		for (let n = 0; n < 3; n++) editor.undo();
		expect(editor.text()).toBe(text);
		expect(editor.get().dirty).toBe(false);
	});

	it("distinguishes a renamed step from one that took its id", () => {
		const text = "steps:\n  - id: a # one\n    uses: x.y\n  - id: b # two\n    uses: x.y\n";
		const steps = [
			{ id: "a", uses: "x.y" },
			{ id: "b", uses: "x.y" },
		];
		const editor = opened(workflow({ source: text, steps } as Partial<Schema["Workflow"]>));
		editor.renameNode("a", "c");
		editor.renameNode("b", "a");
		editor.renameNode("c", "b");
		expect(editor.text()).toBe("steps:\n  - id: b # one\n    uses: x.y\n  - id: a # two\n    uses: x.y\n");
	});

	it("is not stored for a workflow without text", async () => {
		const editor = opened();
		add(editor);
		await editor.saving.save();
		expect(server.patches[0]?.patch).not.toHaveProperty("source");
	});
});

describe("saving", () => {
	it("writes the present names of connections that were renamed", async () => {
		const call = { id: "one", uses: "http.request", connection: "was" };
		const steps = [
			call,
			{
				id: "each",
				foreach: "[1]",
				steps: [
					{ ...call, id: "two", connection: "other" },
					{ ...call, id: "in" },
				],
			},
		];
		const triggers = [{ id: "poll", type: "poll", connection: "was" }];
		const editor = opened(workflow({ steps, triggers } as Partial<Schema["Workflow"]>));
		editor.setConnectionNames(new Map([["was", "now"]]));
		expect(editor.get().dirty).toBe(false);
		add(editor);
		await editor.saving.save();
		const sent = JSON.stringify(server.patches[0]?.patch);
		expect(sent.match(/"connection":"\w+"/g)?.sort()).toEqual(
			["now", "now", "now", "other"].map((name) => `"connection":"${name}"`),
		);
	});

	it("sends the changes with the ETag and the text", async () => {
		const editor = opened(workflow({ source }));
		add(editor);
		expect(await editor.saving.save()).toBe(true);
		const [sent] = server.patches;
		expect(sent?.etag).toBe('"1"');
		expect(Object.keys(sent?.patch ?? {}).sort()).toEqual(["source", "steps"]);
		expect(editor.get()).toMatchObject({ dirty: false, etag: '"2"' });
	});

	it("sends null for removed fields", async () => {
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

	it("keeps later edits unsaved", async () => {
		const editor = opened();
		add(editor);
		const saved = editor.saving.save();
		add(editor, "flow.stop");
		await saved;
		expect(editor.get().dirty).toBe(true);
		await editor.saving.save();
		expect((server.now.data.steps as { id: string }[]).map((step) => step.id)).toEqual(["a", "set", "stop"]);
	});

	it("shows server errors at their fields", async () => {
		const editor = opened();
		add(editor);
		server.error = new ApiError(422, "workflow_invalid", "No.", [
			{ pointer: "/steps/1/with/values", message: "is required" },
		]);
		expect(await editor.saving.save()).toBe(false);
		expect(editor.get().saveError?.code).toBe("workflow_invalid");
		expect(editor.get().problems).toEqual([{ pointer: "/steps/1/with/values", message: "is required", node: "set" }]);
	});
});

describe("a newer version on the server", () => {
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

	it("can be adopted, and undo restores the edits", async () => {
		const editor = await met();
		editor.saving.takeTheirs();
		expect(ids(editor)).toEqual(["theirs"]);
		expect(editor.get()).toMatchObject({ dirty: false, conflict: null, etag: '"7"' });
		editor.undo();
		expect(ids(editor)).toEqual(["a", "set"]);
	});

	it("is not affected by saving a copy", async () => {
		const editor = await met();
		expect(await editor.saving.saveCopy("Orders (copy)")).toEqual({ id: "wf_2" });
		expect(server.imports).toEqual([
			expect.objectContaining({
				name: "Orders (copy)",
				steps: [expect.objectContaining({ id: "a" }), expect.objectContaining({ id: "set" })],
			}),
		]);
		expect((server.now.data.steps as { id: string }[]).map((step) => step.id)).toEqual(["theirs"]);
	});
});

describe("a reload", () => {
	it("restores unsaved edits with their original ETag", async () => {
		add(opened());
		const newer = new FakeServer(workflow({ version: 3 }));
		newer.now = { ...newer.now, etag: '"5"' };
		const editor = new Editor(newer.now, { server: newer, drafts });
		expect(ids(editor)).toEqual(["a", "set"]);
		expect(editor.get()).toMatchObject({ dirty: true, etag: '"1"' });
		expect(await editor.saving.save()).toBe(false);
		expect(editor.get().conflict).not.toBeNull();
	});

	it("restores invalid text", () => {
		opened(workflow({ source })).setText(`${source}  - [`);
		const editor = new Editor(server.now, { server, drafts });
		expect(editor.text()).toBe(`${source}  - [`);
		expect(editor.get().broken).not.toBeNull();
	});

	it("restores nothing once everything is saved or undone", async () => {
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
