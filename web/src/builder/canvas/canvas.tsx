import "./view/flow.css";
import "./canvas.css";
import { Background, BackgroundVariant, MiniMap, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import { type MouseEvent, useCallback, useEffect, useRef, useState } from "react";
import { startNode } from "@/builder/layout/size";
import { useOverlay } from "@/builder/replay/overlay";
import { useEditor, useFixed } from "@/builder/state";
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
import { useFocus } from "./use-focus";

const zoomed = { min: 0.1, max: 1.5 };

/** Canvas is the workflow as a picture that can be edited. It is one tab stop. */
export function Canvas() {
	const editor = useEditor();
	const fixed = useFixed();
	const surface = useRef<HTMLDivElement>(null);
	const { nodes, edges, drawing, onNodesChange, settle } = useDrawing();
	const { onNodeDrag, onNodeDragStop } = useDrag(drawing, settle);
	const { connecting, ...connect } = useConnect();
	const overlay = useOverlay();
	useFocus(surface);
	useCanvasKeys(surface, drawing);
	const painted = useAfterPaint();
	const onEdgeClick = useCallback(
		(_event: MouseEvent, edge: CanvasEdge) => {
			if (edge.selectable) editor.selectEdge(edge.id);
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
				className={cx("builder-canvas relative size-full", connecting && "connecting")}
			>
				<ReactFlow<CanvasNode, CanvasEdge>
					nodes={nodes}
					edges={edges}
					nodeTypes={nodeTypes}
					edgeTypes={edgeTypes}
					onNodesChange={onNodesChange}
					onNodeDrag={onNodeDrag}
					onNodeDragStop={onNodeDragStop}
					onEdgeClick={onEdgeClick}
					onPaneClick={onPaneClick}
					onInit={opening}
					{...connect}
					connectionLineComponent={ConnectionLine}
					connectionRadius={32}
					nodesConnectable={!fixed}
					nodesFocusable={false}
					edgesFocusable={false}
					elementsSelectable
					elevateNodesOnSelect={false}
					selectNodesOnDrag={false}
					nodeDragThreshold={4}
					deleteKeyCode={null}
					disableKeyboardA11y
					selectionKeyCode="Shift"
					multiSelectionKeyCode={["Meta", "Control", "Shift"]}
					panOnScroll
					zoomOnDoubleClick={false}
					minZoom={zoomed.min}
					maxZoom={zoomed.max}
					snapToGrid
					snapGrid={[8, 8]}
					onlyRenderVisibleElements={nodes.length > 80}
					proOptions={{ hideAttribution: true }}
					aria-label="Canvas"
				>
					<Background variant={BackgroundVariant.Dots} gap={24} size={1.5} />
					<SelectionBar />
					<Controls />
					{painted && nodes.length > 6 && (
						<MiniMap
							pannable
							zoomable
							ariaLabel="Map of the workflow"
							nodeBorderRadius={16}
							nodeColor="var(--control)"
							className="!m-3 max-lg:!hidden"
						/>
					)}
				</ReactFlow>
			</div>
		</OverlayContext>
	);
}

/** The whole workflow if it can be read like that, else its beginning. */
function opening(flow: ReactFlowInstance<CanvasNode, CanvasEdge>): void {
	const host = document.querySelector<HTMLElement>('[data-surface="canvas"]');
	if (!host) return;
	const bounds = flow.getNodesBounds(flow.getNodes());
	const fitting = Math.min(1, (host.clientWidth - 96) / bounds.width, (host.clientHeight - 128) / bounds.height);
	const zoom = Math.max(fitting, 0.7);
	const bar = flow.getNode(startNode);
	const whole = zoom === fitting || !bar;
	const middle = whole ? bounds.x + bounds.width / 2 : bar.position.x + (bar.width ?? 0) / 2;
	const top = whole ? Math.max(48, (host.clientHeight - bounds.height * zoom) / 3) : 48;
	const first = whole ? bounds.y : Math.min(...flow.getNodes().map((node) => node.position.y));
	void flow.setViewport({ x: host.clientWidth / 2 - middle * zoom, y: top - first * zoom, zoom });
}

/** What can wait until the first picture is there. */
function useAfterPaint(): boolean {
	const [painted, setPainted] = useState(false);
	useEffect(() => {
		const timer = setTimeout(() => setPainted(true), 300);
		return () => clearTimeout(timer);
	}, []);
	return painted;
}
