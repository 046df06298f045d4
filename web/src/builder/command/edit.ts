import {
	addStep,
	addTrigger,
	change,
	type Doc,
	disconnect,
	duplicate,
	type Edit,
	find,
	isBlock,
	type JsonObject,
	leavesOf,
	move,
	moveInto,
	moveOut,
	type NewStep,
	type Path,
	type Place,
	type Point,
	placeNodes,
	remove,
	rename,
	renameTrigger,
	split,
	type TriggerType,
	tidy,
	title,
	unwrap,
	wrap,
} from "@/builder/model";
import { graphOf } from "@/builder/state";
import type { Editor } from "@/builder/state/editor";

// What a person does to the document, whatever the view: each is one step of
// undo, refusals are told, and what was done is said to screen readers.

export function nameOf(doc: Doc, node: string): string {
	const spot = find(doc.steps, node);
	return spot ? title(spot.step) : node.replace(/^@/, "");
}

const many = (count: number, one: string) => (count === 1 ? `1 ${one}` : `${count} ${one}s`);

/** The selected steps, without triggers. */
export function selectedSteps(editor: Editor): string[] {
	return editor.get().selected.filter((node) => !node.startsWith("@"));
}

/** Where a step goes that is added by key: after the selected one, or behind the last. */
export function placeToAdd(editor: Editor): Place {
	const step = selectedSteps(editor).at(-1);
	if (step !== undefined && editor.has(step)) return { at: "after", step };
	const leaves = leavesOf(graphOf(editor.doc), null);
	const last = leaves.at(-1);
	return last === undefined ? { at: "end", block: null } : { at: "after", step: last };
}

/** Adds a step and goes to the first field that has to be filled in. */
export function insert(editor: Editor, step: NewStep, place: Place): void {
	const edit = editor.apply((doc) => addStep(doc, step, place));
	const [id] = edit.select;
	if (edit.refused || id === undefined) return;
	editor.reveal(id, null);
	editor.say(`Added ${nameOf(edit.doc, id)}.`);
}

/** What a new trigger begins with, so that it works or shows what it wants. */
const beginnings: Record<TriggerType, JsonObject> = {
	manual: {},
	schedule: { cron: "0 9 * * *" },
	webhook: {},
	event: { events: ["run.failed"] },
	poll: { every: "5m", request: { url: "" }, items: "response.body", key: "item.id" },
};

export function insertTrigger(editor: Editor, type: TriggerType): void {
	const edit = editor.apply((doc) => addTrigger(doc, { type, ...beginnings[type] }));
	const [node] = edit.select;
	if (edit.refused || node === undefined) return;
	editor.reveal(node, null);
	editor.say("Added a trigger.");
}

export function insertSplit(editor: Editor, paths: readonly Path[], otherwise: NewStep | null, place: Place): void {
	const edit = editor.apply((doc) => split(doc, paths, otherwise, place));
	const [first] = edit.select;
	if (edit.refused || first === undefined) return;
	editor.reveal(first, null);
	editor.say(`Split into ${many(edit.select.length, "path")}.`);
}

/** Takes out what is selected: nodes, whose followers are handed on, or an edge. */
export function removeSelected(editor: Editor): void {
	const { edge, selected } = editor.get();
	if (edge !== null) {
		removeEdge(editor, edge);
		return;
	}
	if (selected.length === 0) return;
	const next = neighbourOf(editor.doc, selected);
	const edit = editor.apply((doc) => remove(doc, selected), { say: `Removed ${many(selected.length, "node")}.` });
	if (!edit.refused) editor.select(next && editor.has(next) ? [next] : []);
}

function removeEdge(editor: Editor, edge: string): void {
	const [from, to] = edge.split("->");
	if (from !== undefined && to !== undefined) {
		editor.apply((doc) => disconnect(doc, from, to), { say: "Removed the connection." });
	}
}

/** The node that takes the selection over: what the removed ones came after, else what came after them. */
function neighbourOf(doc: Doc, nodes: readonly string[]): string | undefined {
	const gone = new Set(nodes);
	const g = graphOf(doc);
	for (const node of nodes) {
		const at = g.nodes.get(node);
		const near = [...(at?.needs ?? []), ...(at?.followers ?? []), ...(at?.block ? [at.block] : [])];
		const left = near.find((other) => !gone.has(other));
		if (left !== undefined) return left;
	}
	return undefined;
}

export function duplicateSelected(editor: Editor): void {
	const ids = selectedSteps(editor);
	if (ids.length > 0) editor.apply((doc) => duplicate(doc, ids), { say: `Duplicated ${many(ids.length, "step")}.` });
}

/** Changes the id and the name of a node; one step of undo. */
export function renameTo(editor: Editor, node: string, id: string, name: string | undefined): Edit {
	const trigger = node.startsWith("@");
	return editor.apply(
		(doc) => {
			const old = node.replace(/^@/, "");
			const renamed =
				id === old ? { doc, select: [node] } : trigger ? renameTrigger(doc, old, id) : rename(doc, old, id);
			return renamed.refused || trigger ? renamed : named(renamed, id, name);
		},
		{ say: "Renamed." },
	);
}

function named(edit: Edit, id: string, name: string | undefined): Edit {
	const spot = find(edit.doc.steps, id);
	return spot ? { ...change(edit.doc, id, "/name", name || undefined), select: [id] } : edit;
}

export function tidyUp(editor: Editor): void {
	editor.apply((doc) => tidy(doc), { keep: true, say: "Tidied up." });
}

/** Puts top-level nodes where they were dropped. */
export function place(editor: Editor, places: Readonly<Record<string, Point>>, group: string | null = null): void {
	editor.apply((doc) => placeNodes(doc, places), { keep: true, group });
}

/** Moves steps onto an edge; their own places are forgotten, they stand where the edge was. */
export function moveToEdge(editor: Editor, ids: readonly string[], from: string | null, to: string): void {
	editor.apply((doc) => move(doc, ids, { at: "edge", from, to }), { say: `Moved ${many(ids.length, "step")}.` });
}

export function moveInside(editor: Editor, ids: readonly string[], block: string | null): void {
	const where = block === null ? "out of the loop" : `into ${nameOf(editor.doc, block)}`;
	editor.apply((doc) => moveInto(doc, ids, block), { say: `Moved ${many(ids.length, "step")} ${where}.` });
}

export function moveOutside(editor: Editor, ids: readonly string[]): void {
	editor.apply((doc) => moveOut(doc, ids), { say: "Moved out of the loop." });
}

export function wrapSelected(editor: Editor, kind: "foreach" | "repeat"): void {
	const ids = selectedSteps(editor);
	if (ids.length === 0) return;
	const loop = kind === "foreach" ? { foreach: "" } : { repeat: { until: "", every: "30s", max: 20 } };
	const edit = editor.apply((doc) => wrap(doc, ids, loop), { say: "Put into a loop." });
	if (!edit.refused) editor.reveal(edit.select[0] ?? null, null);
}

export function unwrapSelected(editor: Editor): void {
	const id = selectedSteps(editor).at(-1);
	const spot = id === undefined ? undefined : find(editor.doc.steps, id);
	if (spot && isBlock(spot.step)) editor.apply((doc) => unwrap(doc, spot.step.id), { say: "Removed the loop around." });
}
