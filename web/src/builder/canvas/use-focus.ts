import { useReactFlow } from "@xyflow/react";
import { type RefObject, useEffect } from "react";
import { startNode } from "@/builder/layout/size";
import { type Adding, useEditor } from "@/builder/state";
import { ghosts } from "./build";
import { currentNode } from "./current";
import { stillness } from "./motion";

/** The node that has the focus, and with it the one tab stop of the canvas. */
function elementOf(surface: HTMLElement, node: string): HTMLElement | null {
	return surface.querySelector<HTMLElement>(`[data-node="${CSS.escape(node)}"]`);
}

export function focusNode(surface: HTMLElement | null, node: string): boolean {
	const element = surface && elementOf(surface, node);
	element?.focus({ preventScroll: true });
	return Boolean(element);
}

/** A node that is out of sight is drawn only once the view comes to it. */
function focusSoon(surface: HTMLElement, node: string, meant: () => boolean, tries = 30): void {
	if (!meant() || focusNode(surface, node) || tries === 0) return;
	requestAnimationFrame(() => focusSoon(surface, node, meant, tries - 1));
}

/** useFocus lets the focus follow the selection, and the view follow the focus. */
export function useFocus(surface: RefObject<HTMLDivElement | null>): void {
	const editor = useEditor();
	const flow = useReactFlow();
	useEffect(() => {
		let last = currentNode(editor.get());
		let adding = editor.get().adding;
		return editor.watch(() => {
			if (adding !== editor.get().adding) {
				adding = editor.get().adding;
				if (adding && surface.current) showNode(flow, surface.current, nodeBeside(adding), picker);
			}
			const node = currentNode(editor.get());
			if (node === last) return;
			last = node;
			const host = surface.current;
			// Where the focus was may be gone with its node.
			const here = host?.contains(document.activeElement) || document.activeElement === document.body;
			requestAnimationFrame(() => {
				if (!host) return;
				showNode(flow, host, node);
				if (here) focusSoon(host, node, () => currentNode(editor.get()) === node);
			});
		});
	}, [editor, flow, surface]);
}

/** The width that the picker covers at the left. */
const picker = 320;

/** The node beside which something is about to be added. */
function nodeBeside(adding: Adding): string {
	if (adding.kind === "trigger") return startNode;
	const { place } = adding;
	switch (place.at) {
		case "end":
			return place.block ?? ghosts.step;
		case "edge":
			return place.to;
		default:
			return place.step ?? startNode;
	}
}

/** Moves the view no further than it takes to see a node. */
export function showNode(flow: ReturnType<typeof useReactFlow>, host: HTMLElement, node: string, covered = 0): void {
	const inner = flow.getInternalNode(node);
	if (!inner) return;
	const { x, y, zoom } = flow.getViewport();
	const at = inner.internals.positionAbsolute;
	const margin = 48;
	const left = at.x * zoom + x;
	const top = at.y * zoom + y;
	const right = left + (inner.width ?? 0) * zoom;
	const bottom = top + Math.min(inner.height ?? 0, 160) * zoom;
	const dx =
		left < margin + covered
			? margin + covered - left
			: right > host.clientWidth - margin
				? host.clientWidth - margin - right
				: 0;
	const dy =
		top < margin ? margin - top : bottom > host.clientHeight - margin ? host.clientHeight - margin - bottom : 0;
	if (dx === 0 && dy === 0) return;
	void flow.setViewport({ x: x + dx, y: y + dy, zoom }, { duration: stillness() ? 0 : 180 });
}
