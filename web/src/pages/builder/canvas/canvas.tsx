import "@/shared/canvas/flow.css";
import "./canvas.css";
import { Background, BackgroundVariant, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { type MouseEvent, useCallback, useRef } from "react";
import { useOverlay } from "@/pages/builder/replay/overlay";
import { useEditor, useReadOnly } from "@/pages/builder/state";
import { Overview } from "@/shared/canvas/overview";
import { flowOptions, openingView } from "@/shared/canvas/viewport";
import { startNode } from "@/shared/workflow/layout/size";
import { cx } from "@/ui/class";
import type { CanvasEdge, CanvasNode } from "./build";
import { ConnectionLine } from "./connection-line";
import { Controls } from "./controls";
import { OverlayContext } from "./current";
import { edgeTypes } from "./link";
import { nodeTypes } from "./nodes";
import { SelectionBar } from "./selection-bar";
import { useCanvasKeys } from "./use-canvas-keys";
import { useConnect } from "./use-connect";
import { useDrag } from "./use-drag";
import { useDrawing } from "./use-drawing";
import { useFocus, usePickerView } from "./use-focus";

/** Canvas is the editable graph of the workflow. It is a single tab stop. */
export function Canvas() {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const surface = useRef<HTMLDivElement>(null);
	const { nodes, edges, drawing, onNodesChange, settle } = useDrawing();
	const { onNodeDrag, onNodeDragStop } = useDrag(drawing, settle);
	const { connecting, ...connect } = useConnect();
	const overlay = useOverlay();
	useFocus(surface);
	const onMoveStart = usePickerView(surface);
	useCanvasKeys(surface, drawing);
	const onEdgeClick = useCallback(
		(_event: MouseEvent, edge: CanvasEdge) => {
			if (edge.selectable) editor.selectEdge(edge.id);
		},
		[editor],
	);
	const onNodeClick = useCallback(
		(event: MouseEvent) => {
			if (!event.ctrlKey && !event.metaKey && !event.shiftKey) editor.showDetails();
		},
		[editor],
	);
	const onPaneClick = useCallback(() => {
		editor.select([]);
		editor.add(null);
	}, [editor]);
	return (
		<OverlayContext value={overlay}>
			<div
				ref={surface}
				data-surface="canvas"
				// A click on the canvas beside its steps moves the focus to it, and so the keys.
				tabIndex={-1}
				className={cx("builder-canvas relative size-full outline-none", connecting && "connecting")}
			>
				<ReactFlow<CanvasNode, CanvasEdge>
					{...flowOptions}
					nodes={nodes}
					edges={edges}
					nodeTypes={nodeTypes}
					edgeTypes={edgeTypes}
					onNodesChange={onNodesChange}
					onNodeDrag={onNodeDrag}
					onNodeDragStop={onNodeDragStop}
					onNodeClick={onNodeClick}
					onEdgeClick={onEdgeClick}
					onPaneClick={onPaneClick}
					onInit={setInitialViewport}
					onMoveStart={onMoveStart}
					{...connect}
					connectionLineComponent={ConnectionLine}
					connectionRadius={32}
					nodesConnectable={!readOnly}
					elementsSelectable
					elevateNodesOnSelect={false}
					selectNodesOnDrag={false}
					nodeDragThreshold={4}
					selectionKeyCode="Shift"
					multiSelectionKeyCode={["Meta", "Control", "Shift"]}
					panOnScroll
					zoomOnDoubleClick={false}
					snapToGrid
					snapGrid={[8, 8]}
					onlyRenderVisibleElements={nodes.length > 80}
					proOptions={{ hideAttribution: true }}
					aria-label="Canvas"
				>
					<Background variant={BackgroundVariant.Dots} gap={24} size={1.5} />
					<SelectionBar />
					<Controls />
					<Overview nodes={nodes} ariaLabel="Minimap" nodeBorderRadius={16} nodeColor="var(--control)" />
				</ReactFlow>
			</div>
		</OverlayContext>
	);
}

function setInitialViewport(flow: ReactFlowInstance<CanvasNode, CanvasEdge>): void {
	const host = document.querySelector<HTMLElement>('[data-surface="canvas"]');
	if (!host) return;
	const bounds = flow.getNodesBounds(flow.getNodes());
	const bar = flow.getNode(startNode);
	const start = bar && { ...bar.position, width: bar.width ?? 0, height: bar.height ?? 0 };
	void flow.setViewport(openingView(host, bounds, start));
}
