import { type OnNodeDrag, useReactFlow } from "@xyflow/react";
import { useCallback } from "react";
import { moveToEdge, place } from "@/pages/builder/command/edit";
import { useEditor } from "@/pages/builder/state";
import { find, type Point } from "@/shared/workflow/model";
import type { CanvasNode, Drawing } from "./build";
import { edgeUnder, endsOf, useDropping } from "./drop";

/** useDrag moves steps onto an edge or to another position. Only the dragged nodes re-render meanwhile. */
export function useDrag(drawing: Drawing, settle: () => void) {
	const editor = useEditor();
	const flow = useReactFlow<CanvasNode>();

	const onNodeDrag: OnNodeDrag<CanvasNode> = useCallback(
		(_event, node, dragged) => {
			const steps = dragged.filter((one) => one.type === "step" || one.type === "block");
			const at = flow.getInternalNode(node.id)?.internals.positionAbsolute;
			if (!at || steps.length === 0) return;
			const middle = { x: at.x + (node.width ?? 0) / 2, y: at.y + (node.height ?? 0) / 2 };
			const ids = new Set(steps.map((one) => one.id));
			const block = find(editor.doc.steps, node.id)?.block ?? null;
			useDropping.setState({ edge: edgeUnder(drawing.laid, ids, block, middle) });
		},
		[drawing, editor, flow],
	);

	const onNodeDragStop: OnNodeDrag<CanvasNode> = useCallback(
		(_event, _node, dragged) => {
			const { edge } = useDropping.getState();
			useDropping.setState({ edge: null });
			if (edge !== null) {
				const { from, to } = endsOf(edge);
				const steps = dragged.filter((one) => one.type === "step" || one.type === "block");
				moveToEdge(
					editor,
					steps.map((one) => one.id),
					from,
					to,
				);
			} else {
				const free = dragged.filter((one) => one.parentId === undefined);
				const places = free.map((one): [string, Point] => [one.id, [one.position.x, one.position.y]]);
				if (places.length > 0) place(editor, Object.fromEntries(places));
			}
			// Steps inside frames are laid out automatically, and a rejected move changes nothing.
			settle();
		},
		[editor, settle],
	);

	return { onNodeDrag, onNodeDragStop };
}
