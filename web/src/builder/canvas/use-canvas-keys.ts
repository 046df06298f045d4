import { useReactFlow } from "@xyflow/react";
import type { RefObject } from "react";
import { place } from "@/builder/command/edit";
import type { Point } from "@/builder/model";
import { graphOf, useEditor } from "@/builder/state";
import { useShortcut } from "@/shell/keys";
import { type Drawing, ghosts } from "./build";
import { currentNode } from "./current";
import { stillness } from "./motion";
import { steer, type Way } from "./steer";
import { focusNode } from "./use-focus";

const group = "Canvas";
const inCanvas = (target: EventTarget | null) =>
	target instanceof HTMLElement && target.closest('[data-surface="canvas"]') !== null;
/** The keys of the canvas also count where nothing has the focus. */
const free = (target: EventTarget | null) => inCanvas(target) || target === document.body;

/** useCanvasKeys moves along the graph and moves the view. */
export function useCanvasKeys(surface: RefObject<HTMLDivElement | null>, drawing: Drawing): void {
	const editor = useEditor();
	const flow = useReactFlow();
	const duration = () => (stillness() ? 0 : 180);

	const go = (way: Way, extend: boolean) => {
		const from = currentOf(surface.current) ?? currentNode(editor.get());
		const to = steer(editor.doc, graphOf(editor.doc), drawing.laid, from, way);
		if (to === undefined) return;
		const node = to === ghosts.step || to === ghosts.trigger;
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
		if (node === ghosts.trigger) editor.add({ kind: "trigger" });
		else if (node === ghosts.step) editor.add({ kind: "step", place: { at: "end", block: null } });
		else {
			const last = node ?? currentNode(editor.get());
			if (editor.has(last)) editor.reveal(last, null);
		}
	};
	const back = () => {
		if (editor.get().adding) editor.add(null);
		else editor.select([]);
	};

	useShortcut("ArrowUp", "What comes before", () => go("up", false), group, free);
	useShortcut("ArrowDown", "What comes after", () => go("down", false), group, free);
	useShortcut("ArrowLeft", "What stands to the left", () => go("left", false), group, free);
	useShortcut("ArrowRight", "What stands to the right", () => go("right", false), group, free);
	useShortcut("Shift+ArrowUp", "Select it too", () => go("up", true), group, free);
	useShortcut("Shift+ArrowDown", "Select it too", () => go("down", true), group, free);
	useShortcut("Shift+ArrowLeft", "Select it too", () => go("left", true), group, free);
	useShortcut("Shift+ArrowRight", "Select it too", () => go("right", true), group, free);
	useShortcut("Alt+ArrowUp", "Nudge", () => nudge(0, -1), group, free);
	useShortcut("Alt+ArrowDown", "Nudge", () => nudge(0, 1), group, free);
	useShortcut("Alt+ArrowLeft", "Nudge", () => nudge(-1, 0), group, free);
	useShortcut("Alt+ArrowRight", "Nudge", () => nudge(1, 0), group, free);
	useShortcut("Enter", "Settings of the step", enter, group, free);
	useShortcut("Escape", "Back", back, group, free);
	useShortcut("0", "Zoom to fit", () => void flow.fitView({ padding: 0.15, maxZoom: 1, duration: duration() }), group);
	useShortcut("=", "Zoom in", () => void flow.zoomIn({ duration: duration() }), group, free);
	useShortcut("-", "Zoom out", () => void flow.zoomOut({ duration: duration() }), group, free);
}

/** The node that has the focus. */
function currentOf(surface: HTMLElement | null): string | undefined {
	const active = document.activeElement;
	return active instanceof HTMLElement && surface?.contains(active) ? active.dataset.node : undefined;
}
