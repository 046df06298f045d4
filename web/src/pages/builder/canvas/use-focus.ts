import { useReactFlow } from "@xyflow/react";
import { type RefObject, useCallback, useEffect, useState } from "react";
import { type Adding, useEditor } from "@/pages/builder/state";
import { animation, showNode } from "@/shared/canvas/viewport";
import { startNode } from "@/shared/workflow/layout/size";
import { placeholders } from "./build";
import { currentNode } from "./current";
import { SavedViewport } from "./saved-viewport";

/** The focusable element of a node. */
function elementOf(surface: HTMLElement, node: string): HTMLElement | null {
	return surface.querySelector<HTMLElement>(`[data-node="${CSS.escape(node)}"]`);
}

export function focusNode(surface: HTMLElement | null, node: string): boolean {
	const element = surface && elementOf(surface, node);
	element?.focus({ preventScroll: true });
	return Boolean(element);
}

/** A node outside the view is rendered only once the view reaches it. */
function focusWhenRendered(surface: HTMLElement, node: string, meant: () => boolean, tries = 30): void {
	if (!meant() || focusNode(surface, node) || tries === 0) return;
	requestAnimationFrame(() => focusWhenRendered(surface, node, meant, tries - 1));
}

/**
 * usePickerView scrolls if the picker would cover the place where something is added, and
 * scrolls back if nothing is picked. It returns a handler for viewport changes by the
 * user.
 */
export function usePickerView(surface: RefObject<HTMLDivElement | null>): (event: unknown) => void {
	const editor = useEditor();
	const flow = useReactFlow();
	const [saved] = useState(() => new SavedViewport());
	useEffect(() => {
		let last = editor.get().adding;
		return editor.watch(() => {
			const { adding } = editor.get();
			if (adding === last) return;
			last = adding;
			const host = surface.current;
			if (adding && host) {
				const from = flow.getViewport();
				if (showNode(flow, host, nodeBeside(adding), pickerWidth)) saved.begin(from, editor.doc);
			} else {
				const back = saved.end(editor.doc);
				if (back) void flow.setViewport(back, animation());
			}
		});
	}, [editor, flow, surface, saved]);
	// Programmatic moves have no event.
	return useCallback((event) => event && saved.cancel(), [saved]);
}

/** useFocus makes the focus follow the selection, and the view follow the focus. */
export function useFocus(surface: RefObject<HTMLDivElement | null>): void {
	const editor = useEditor();
	const flow = useReactFlow();
	useEffect(() => {
		let last = currentNode(editor.get());
		return editor.watch(() => {
			const node = currentNode(editor.get());
			if (node === last) return;
			last = node;
			const host = surface.current;
			// The focused element may have been removed with its node.
			const here = host?.contains(document.activeElement) || document.activeElement === document.body;
			requestAnimationFrame(() => {
				if (!host) return;
				showNode(flow, host, node);
				if (here) focusWhenRendered(host, node, () => currentNode(editor.get()) === node);
			});
		});
	}, [editor, flow, surface]);
}

/** The width that the picker covers on the left. */
const pickerWidth = 320;

/** The node next to which something is being added. */
function nodeBeside(adding: Adding): string {
	if (adding.kind === "trigger") return startNode;
	const { place } = adding;
	switch (place.at) {
		case "end":
			return place.block ?? placeholders.step;
		case "edge":
			return place.to;
		default:
			return place.step ?? startNode;
	}
}
