import { graphOf } from "@/pages/builder/state";
import type { Editor } from "@/pages/builder/state/editor";
import { triggerInfo } from "@/shared/triggers";
import {
	addStep,
	addTrigger,
	change,
	type Doc,
	disconnect,
	duplicate,
	type Edit,
	find,
	freeNeed,
	isBlock,
	leavesOf,
	move,
	moveInto,
	moveOut,
	type NewStep,
	type Place,
	type Point,
	placeNodes,
	remove,
	rename,
	renameTrigger,
	type TriggerType,
	tidy,
	title,
	unwrap,
	wrap,
} from "@/shared/workflow/model";

// User-level edits, shared by all views. Each one is a single undo step, reports why it
// was rejected, and is announced to screen readers.

export function nameOf(doc: Doc, node: string): string {
	const spot = find(doc.steps, node);
	return spot ? title(spot.step) : node.replace(/^@/, "");
}

const countOf = (count: number, one: string) => (count === 1 ? `1 ${one}` : `${count} ${one}s`);

/** The selected steps, without triggers. */
export function selectedSteps(editor: Editor): string[] {
	return editor.get().selected.filter((node) => !node.startsWith("@"));
}

/** Where a step added by shortcut goes: after the selected one, or at the end. */
export function placeToAdd(editor: Editor): Place {
	const step = selectedSteps(editor).at(-1);
	if (step !== undefined && editor.has(step)) return { at: "after", step: freeNeed(editor.doc, step) };
	const leaves = leavesOf(graphOf(editor.doc), null);
	const last = leaves.at(-1);
	return last === undefined ? { at: "end", block: null } : { at: "after", step: freeNeed(editor.doc, last) };
}

/** Adds a step and focuses its first required field. */
export function insert(editor: Editor, step: NewStep, place: Place): void {
	const edit = editor.apply((doc) => addStep(doc, step, place));
	const [id] = edit.select;
	if (edit.rejected || id === undefined) return;
	editor.reveal(id, null);
	editor.announce(`Added ${nameOf(edit.doc, id)}.`);
}

export function insertTrigger(editor: Editor, type: TriggerType): void {
	const edit = editor.apply((doc) => addTrigger(doc, { type, ...triggerInfo(type).initial }));
	const [node] = edit.select;
	if (edit.rejected || node === undefined) return;
	editor.reveal(node, null);
	editor.announce("Added a trigger.");
}

/** Removes the selected nodes, reconnecting what comes after them, or the selected edge. */
export function removeSelected(editor: Editor): void {
	const { edge, selected } = editor.get();
	if (edge !== null) {
		removeEdge(editor, edge);
		return;
	}
	if (selected.length === 0) return;
	const next = neighbourOf(editor.doc, selected);
	const edit = editor.apply((doc) => remove(doc, selected), {
		announce: `Removed ${countOf(selected.length, "node")}.`,
	});
	if (!edit.rejected) editor.select(next && editor.has(next) ? [next] : []);
}

function removeEdge(editor: Editor, edge: string): void {
	const [from, to] = edge.split("->");
	if (from !== undefined && to !== undefined) {
		editor.apply((doc) => disconnect(doc, from, to), { announce: "Removed the connection." });
	}
}

/** The node to select after a removal: a predecessor of the removed ones, or else a successor. */
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
	if (ids.length > 0)
		editor.apply((doc) => duplicate(doc, ids), { announce: `Duplicated ${countOf(ids.length, "step")}.` });
}

/** Changes the id and the name of a node in one undo step. */
export function renameTo(editor: Editor, node: string, id: string, name: string | undefined): Edit {
	const trigger = node.startsWith("@");
	return editor.apply(
		(doc) => {
			const old = node.replace(/^@/, "");
			const renamed =
				id === old ? { doc, select: [node] } : trigger ? renameTrigger(doc, old, id) : rename(doc, old, id);
			return renamed.rejected || trigger ? renamed : named(renamed, id, name);
		},
		{ announce: "Renamed." },
	);
}

function named(edit: Edit, id: string, name: string | undefined): Edit {
	const spot = find(edit.doc.steps, id);
	return spot ? { ...edit, ...change(edit.doc, id, "/name", name || undefined), select: [id] } : edit;
}

export function tidyUp(editor: Editor): void {
	editor.apply((doc) => tidy(doc), { keepSelection: true, announce: "Tidied up." });
}

/** Places top-level nodes where they were dropped. */
export function place(editor: Editor, places: Readonly<Record<string, Point>>, group: string | null = null): void {
	editor.apply((doc) => placeNodes(doc, places), { keepSelection: true, group });
}

/** Moves steps onto an edge and drops their stored positions. */
export function moveToEdge(editor: Editor, ids: readonly string[], from: string | null, to: string): void {
	editor.apply((doc) => move(doc, ids, { at: "edge", from, to }), {
		announce: `Moved ${countOf(ids.length, "step")}.`,
	});
}

export function moveInside(editor: Editor, ids: readonly string[], block: string | null): void {
	const where = block === null ? "out of the loop" : `into ${nameOf(editor.doc, block)}`;
	editor.apply((doc) => moveInto(doc, ids, block), { announce: `Moved ${countOf(ids.length, "step")} ${where}.` });
}

export function moveOutside(editor: Editor, ids: readonly string[]): void {
	editor.apply((doc) => moveOut(doc, ids), { announce: "Moved out of the loop." });
}

export function wrapSelected(editor: Editor, kind: "foreach" | "repeat"): void {
	const ids = selectedSteps(editor);
	if (ids.length === 0) return;
	const loop = kind === "foreach" ? { foreach: "" } : { repeat: { until: "", every: "30s", max: 20 } };
	const edit = editor.apply((doc) => wrap(doc, ids, loop), { announce: "Wrapped in a loop." });
	if (!edit.rejected) editor.reveal(edit.select[0] ?? null, null);
}

/** Leaves the selected steps out of runs, or puts them back in if all of them are left out. */
export function toggleDisabled(editor: Editor): void {
	const ids = selectedSteps(editor);
	const off = !ids.every((id) => find(editor.doc.steps, id)?.step.disabled);
	editor.apply(
		(doc) => ids.reduce<Edit>((edit, id) => change(edit.doc, id, "/disabled", off || undefined), { doc, select: ids }),
		{ keepSelection: true, announce: `${off ? "Disabled" : "Enabled"} ${countOf(ids.length, "step")}.` },
	);
}

export function unwrapSelected(editor: Editor): void {
	const id = selectedSteps(editor).at(-1);
	const spot = id === undefined ? undefined : find(editor.doc.steps, id);
	if (spot && isBlock(spot.step)) editor.apply((doc) => unwrap(doc, spot.step.id), { announce: "Removed the loop." });
}
