import { createContext, useContext, useMemo, useRef, useSyncExternalStore } from "react";
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
} from "@/builder/model";
import type { Editor } from "./editor";
import type { State } from "./state";

export const EditorContext = createContext<Editor | null>(null);

/** useEditor is the open document with all that can be done to it. It stays the same while its page is open. */
export function useEditor(): Editor {
	const editor = useContext(EditorContext);
	if (!editor) throw new Error("There is no open document here.");
	return editor;
}

/** useEditorState reads a part of the state; the component is drawn again only when that part is another. */
export function useEditorState<T>(read: (state: State) => T, equal: (a: T, b: T) => boolean = Object.is): T {
	const editor = useEditor();
	const last = useRef<{ value: T } | null>(null);
	return useSyncExternalStore(editor.watch, () => {
		const value = read(editor.get());
		if (last.current && equal(last.current.value, value)) return last.current.value;
		last.current = { value };
		return value;
	});
}

export function useDocument(): Doc {
	return useEditorState((state) => state.history.present.doc);
}

const graphs = new WeakMap<readonly Step[], Graph>();

/** The graph of a document, made once for all who ask. */
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

/** useSelection is the selected nodes: steps by id, triggers by `@id`. */
export function useSelection(): readonly string[] {
	return useEditorState((state) => state.selected);
}

export type Selected =
	| { readonly kind: "step"; readonly step: Step; readonly pointer: string }
	| { readonly kind: "trigger"; readonly trigger: Trigger; readonly pointer: string }
	| { readonly kind: "several"; readonly nodes: readonly string[] }
	| { readonly kind: "none" };

/** useSelected is what the form at the right is about. */
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

/** useProblemsOf is what is wrong with one node; null for the workflow itself. */
export function useProblemsOf(node: string | null): readonly Problem[] {
	const all = useProblems();
	return useMemo(() => all.filter((problem) => (problem.node ?? null) === node), [all, node]);
}

export function usePinned(): Readonly<Record<string, Json>> {
	return useEditorState((state) => state.history.present.doc.pinned);
}

/** useFixed tells whether the document cannot be edited just now: broken text, or a role that may not. */
export function useFixed(): boolean {
	return useEditorState((state) => state.broken !== null || !state.mayWrite);
}

export function useUndo(): { canUndo: boolean; canRedo: boolean } {
	const undo = useEditorState((state) => canUndo(state.history));
	const redo = useEditorState((state) => canRedo(state.history));
	return { canUndo: undo, canRedo: redo };
}
