import { applyNodeChanges, type NodeChange, useReactFlow } from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useDocument, useEditor, useReadOnly, useSelection } from "@/pages/builder/state";
import { layoutKey } from "@/shared/workflow/layout/layout";
import { type CanvasNode, type Drawing, draw, reuse } from "./build";
import { animateNodes } from "./motion";

/**
 * useDrawing returns the nodes and edges of the canvas. While a node is dragged only its
 * position changes here; the document is updated on drop.
 */
export function useDrawing() {
	const editor = useEditor();
	const doc = useDocument();
	const selected = useSelection();
	const readOnly = useReadOnly();
	const flow = useReactFlow();
	// Typing in a field does not move nodes.
	const key = layoutKey(doc);
	// biome-ignore lint/correctness/useExhaustiveDependencies: the key covers everything that the layout depends on
	const drawing: Drawing = useMemo(() => draw(doc, readOnly), [key, readOnly]);
	const [nodes, setNodes] = useState<CanvasNode[]>(drawing.nodes);
	const shown = useRef(nodes);
	shown.current = nodes;
	const laid = useRef(drawing);
	const [edges, setEdges] = useState(drawing.edges);

	useEffect(() => {
		const before = laid.current;
		if (before === drawing) return undefined;
		laid.current = drawing;
		setEdges((old) => reuse(old, drawing.edges));
		// The selected node stays in place on the screen.
		const shift = anchorShift(before, drawing, editor.get().selected.at(-1));
		if (shift.x !== 0 || shift.y !== 0) {
			const { x, y, zoom } = flow.getViewport();
			void flow.setViewport({ x: x - shift.x * zoom, y: y - shift.y * zoom, zoom });
		}
		const from = shown.current.map((node) => (node.parentId ? node : moved(node, shift)));
		return animateNodes(from, reuse(shown.current, drawing.nodes), setNodes);
	}, [drawing, editor, flow]);

	const withSelection = useMemo(() => {
		const chosen = new Set(selected);
		return nodes.map((node) =>
			(node.selected ?? false) === chosen.has(node.id) ? node : marked(node, chosen.has(node.id)),
		);
	}, [nodes, selected]);

	const onNodesChange = useCallback(
		(changes: NodeChange<CanvasNode>[]) => {
			const chosen = changes.filter((change) => change.type === "select");
			if (chosen.length > 0) editor.select(reselect(editor.get().selected, chosen));
			const places = changes.filter((change) => change.type === "position");
			if (places.length > 0) setNodes((now) => applyNodeChanges(places, now));
		},
		[editor],
	);

	/** Resets nodes to their positions in the document. */
	const settle = useCallback(() => setNodes((now) => reuse(now, laid.current.nodes)), []);

	return { nodes: withSelection, edges, drawing, onNodesChange, settle };
}

/** Selected copies of nodes, cached to avoid re-rendering. */
const marks = new WeakMap<CanvasNode, CanvasNode>();

function marked(node: CanvasNode, selected: boolean): CanvasNode {
	if (!selected) return { ...node, selected };
	const known = marks.get(node) ?? { ...node, selected };
	marks.set(node, known);
	return known;
}

function moved(node: CanvasNode, by: { x: number; y: number }): CanvasNode {
	return { ...node, position: { x: node.position.x + by.x, y: node.position.y + by.y } };
}

function anchorShift(before: Drawing, after: Drawing, node: string | undefined): { x: number; y: number } {
	const was = before.laid.nodes.find((one) => one.id === node)?.absolute;
	const is = after.laid.nodes.find((one) => one.id === node)?.absolute;
	return was && is ? { x: is.x - was.x, y: is.y - was.y } : { x: 0, y: 0 };
}

function reselect(
	selected: readonly string[],
	changes: readonly { id: string; selected: boolean }[],
): readonly string[] {
	const on = new Set(changes.filter((change) => change.selected).map((change) => change.id));
	const off = new Set(changes.filter((change) => !change.selected).map((change) => change.id));
	const kept = selected.filter((id) => !off.has(id));
	return [...kept, ...[...on].filter((id) => !kept.includes(id))];
}
