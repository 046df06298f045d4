import { createContext, useContext, useMemo } from "react";
import { useStore } from "zustand";
import {
	canRedo,
	canUndo,
	type Doc,
	find,
	type Graph,
	graph,
	type Json,
	type Problem,
	type Step,
	type Trigger,
} from "@/shared/workflow/model";
import type { Editor } from "./editor";
import type { State } from "./state";

export const EditorContext = createContext<Editor | null>(null);

/** useEditor returns the editor of the open document. It is stable while the page is open. */
export function useEditor(): Editor {
	const editor = useContext(EditorContext);
	if (!editor) throw new Error("There is no open document here.");
	return editor;
}

/** useEditorState selects part of the state and re-renders only when that part changes. */
export function useEditorState<T>(read: (state: State) => T): T {
	return useStore(useEditor().store, read);
}

export function useDocument(): Doc {
	return useEditorState((state) => state.history.present.doc);
}

const graphs = new WeakMap<readonly Step[], Graph>();

/** The graph of a document, cached per list of steps. */
export function graphOf(doc: Pick<Doc, "steps">): Graph {
	const known = graphs.get(doc.steps);
	if (known) return known;
	const made = graph(doc);
	graphs.set(doc.steps, made);
	return made;
}

export function useGraph(): Graph {
	return graphOf(useDocument());
}

/** useSelection returns the selected nodes: steps by id, triggers by `@id`. */
export function useSelection(): readonly string[] {
	return useEditorState((state) => state.selected);
}

export type Selected =
	| { readonly kind: "step"; readonly step: Step; readonly pointer: string }
	| { readonly kind: "trigger"; readonly trigger: Trigger; readonly pointer: string }
	| { readonly kind: "several"; readonly nodes: readonly string[] }
	| { readonly kind: "none" };

/** useSelected returns what the settings form shows. */
export function useSelected(): Selected {
	const nodes = useSelection();
	const doc = useDocument();
	return useMemo(() => selectedIn(doc, nodes), [doc, nodes]);
}

function selectedIn(doc: Doc, nodes: readonly string[]): Selected {
	const [node] = nodes;
	if (node === undefined) return { kind: "none" };
	if (nodes.length > 1) return { kind: "several", nodes };
	if (node.startsWith("@")) {
		const index = doc.triggers.findIndex((trigger) => trigger.id === node.slice(1));
		const trigger = doc.triggers[index];
		return trigger ? { kind: "trigger", trigger, pointer: `/triggers/${index}` } : { kind: "none" };
	}
	const spot = find(doc.steps, node);
	return spot ? { kind: "step", step: spot.step, pointer: spot.pointer } : { kind: "none" };
}

export function useProblems(): readonly Problem[] {
	return useEditorState((state) => state.problems);
}

/** useWarnings returns the warnings of one node, or of all. */
export function useWarnings(node?: string): readonly Problem[] {
	const all = useEditorState((state) => state.warnings);
	return useMemo(() => (node === undefined ? all : all.filter((warning) => warning.node === node)), [all, node]);
}

/** useProblemTotal counts the errors in the text and the problems of the last valid document. */
export function useProblemTotal(): number {
	return useEditorState((state) => state.problems.length + (state.broken?.errors.length ?? 0));
}

/** useProblemsOf returns the problems of one node; null for the workflow itself. */
export function useProblemsOf(node: string | null): readonly Problem[] {
	const all = useProblems();
	return useMemo(() => all.filter((problem) => (problem.node ?? null) === node), [all, node]);
}

export function usePinned(): Readonly<Record<string, Json>> {
	return useEditorState((state) => state.history.present.doc.pinned);
}

/** useReadOnly reports whether the document cannot be edited: the text is invalid, or the role does not allow it. */
export function useReadOnly(): boolean {
	return useEditorState((state) => state.broken !== null || !state.mayWrite);
}

export function useUndo(): { canUndo: boolean; canRedo: boolean } {
	const undo = useEditorState((state) => canUndo(state.history));
	const redo = useEditorState((state) => canRedo(state.history));
	return { canUndo: undo, canRedo: redo };
}
