import { useReactFlow } from "@xyflow/react";
import type { RefObject } from "react";
import { place } from "@/pages/builder/command/edit";
import { graphOf, useEditor } from "@/pages/builder/state";
import { zoomIn, zoomOut, zoomToFit } from "@/shared/canvas/viewport";
import type { Point } from "@/shared/workflow/model";
import { useShortcut } from "@/shell/keys";
import { type Drawing, placeholders } from "./build";
import { currentNode } from "./current";
import { type Direction, nextNode } from "./next-node";
import { focusNode } from "./use-focus";

const group = "Canvas";
const inCanvas = (target: EventTarget | null) =>
	target instanceof HTMLElement && target.closest('[data-surface="canvas"]') !== null;
/** The canvas shortcuts also work when nothing has the focus. */
const free = (target: EventTarget | null) => inCanvas(target) || target === document.body;

/** useCanvasKeys registers the shortcuts for navigation and zooming. */
export function useCanvasKeys(surface: RefObject<HTMLDivElement | null>, drawing: Drawing): void {
	const editor = useEditor();
	const flow = useReactFlow();

	const go = (way: Direction, extend: boolean) => {
		const from = currentOf(surface.current) ?? currentNode(editor.get());
		const to = nextNode(editor.doc, graphOf(editor.doc), drawing.laid, from, way);
		if (to === undefined) return;
		const node = to === placeholders.step || to === placeholders.trigger;
		if (node) editor.select([]);
		else editor.select(extend ? [...editor.get().selected.filter((one) => one !== to), to] : [to]);
		focusNode(surface.current, to);
	};
	const nudge = (dx: number, dy: number) => {
		const chosen = new Set(editor.get().selected);
		const places = drawing.laid.nodes
			.filter((one) => chosen.has(one.id) && one.parent === null)
			.map((one): [string, Point] => [one.id, [one.x + dx * 8, one.y + dy * 8]]);
		if (places.length > 0) place(editor, Object.fromEntries(places), "nudge");
	};
	const enter = () => {
		const node = currentOf(surface.current);
		if (node === placeholders.trigger) editor.add({ kind: "trigger" });
		else if (node === placeholders.step) editor.add({ kind: "step", place: { at: "end", block: null } });
		else {
			const last = node ?? currentNode(editor.get());
			if (editor.has(last)) editor.reveal(last, null);
		}
	};
	const back = () => {
		if (editor.get().adding) editor.add(null);
		else editor.select([]);
	};

	useShortcut("ArrowUp", "Go to the previous step", () => go("up", false), group, free);
	useShortcut("ArrowDown", "Go to the next step", () => go("down", false), group, free);
	useShortcut("ArrowLeft", "Go to the step on the left", () => go("left", false), group, free);
	useShortcut("ArrowRight", "Go to the step on the right", () => go("right", false), group, free);
	useShortcut("Shift+ArrowUp", "Extend the selection", () => go("up", true), group, free);
	useShortcut("Shift+ArrowDown", "Extend the selection", () => go("down", true), group, free);
	useShortcut("Shift+ArrowLeft", "Extend the selection", () => go("left", true), group, free);
	useShortcut("Shift+ArrowRight", "Extend the selection", () => go("right", true), group, free);
	useShortcut("Alt+ArrowUp", "Nudge", () => nudge(0, -1), group, free);
	useShortcut("Alt+ArrowDown", "Nudge", () => nudge(0, 1), group, free);
	useShortcut("Alt+ArrowLeft", "Nudge", () => nudge(-1, 0), group, free);
	useShortcut("Alt+ArrowRight", "Nudge", () => nudge(1, 0), group, free);
	useShortcut("Enter", "Open settings", enter, group, free);
	useShortcut("Escape", "Close or deselect", back, group, free);
	useShortcut("0", "Zoom to fit", () => zoomToFit(flow), group, free);
	useShortcut("=", "Zoom in", () => zoomIn(flow), group, free);
	useShortcut("-", "Zoom out", () => zoomOut(flow), group, free);
}

/** The focused node. */
function currentOf(surface: HTMLElement | null): string | undefined {
	const active = document.activeElement;
	return active instanceof HTMLElement && surface?.contains(active) ? active.dataset.node : undefined;
}
