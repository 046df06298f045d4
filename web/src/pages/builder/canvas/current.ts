import { createContext, useContext } from "react";
import { useEditorState } from "@/pages/builder/state";
import type { State } from "@/pages/builder/state/state";
import {
	countProblems,
	type Doc,
	type LoopState,
	type Overlay,
	type Problem,
	type RunStep,
} from "@/shared/workflow/model";
import { placeholders } from "./build";

/** The node that Tab leads to: the one selected last, or the first one. */
export function currentNode(state: State): string {
	const last = state.selected.at(-1);
	if (last !== undefined) return last;
	const { triggers, steps } = state.history.present.doc;
	if (triggers[0]) return `@${triggers[0].id}`;
	if (state.broken === null && state.mayWrite) return placeholders.trigger;
	return steps[0]?.id ?? "";
}

export function useCurrent(id: string): boolean {
	return useEditorState((state) => currentNode(state) === id);
}

const counts = new WeakMap<readonly Problem[], { doc: Doc; counts: Map<string, number> }>();

/** useProblemCount returns the number of problems of a node, including those inside it. */
export function useProblemCount(id: string): number {
	return useEditorState(({ problems, history }) => {
		const { doc } = history.present;
		let known = counts.get(problems);
		if (known?.doc !== doc) {
			known = { doc, counts: countProblems(doc, problems) };
			counts.set(problems, known);
		}
		return known.counts.get(id) ?? 0;
	});
}

export const OverlayContext = createContext<Overlay | null>(null);

/** useRunOf returns the state of a node in the shown run; faint if the run has not reached it. */
export function useRunOf(id: string): { run?: RunStep; loop?: LoopState; faint: boolean } {
	const overlay = useContext(OverlayContext);
	const run = overlay?.nodes.get(id);
	return { run, loop: overlay?.loops.get(id), faint: overlay !== null && run === undefined };
}
