import "@/shared/canvas/flow.css";
import { Background, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { Overview } from "@/shared/canvas/overview";
import { type Box, fittingView, flowOptions, showNode } from "@/shared/canvas/viewport";
import { ZoomControls } from "@/shared/canvas/zoom-controls";
import { type Laid, layOut } from "@/shared/workflow/layout/layout";
import { startNode } from "@/shared/workflow/layout/size";
import { isBlock, type Step } from "@/shared/workflow/model";
import { statusColor } from "@/ui/status";
import { edgesOf, type GraphNode, NodeCache } from "./graph-data";
import { edgeTypes, nodeTypes } from "./graph-nodes";
import { shownExecutions } from "./model/shown-executions";
import type { PanesProps } from "./props";
import { RoundPager } from "./round-pager";
import { useTotals } from "./use-run";

export default function Graph(props: PanesProps) {
	return (
		<ReactFlowProvider>
			<RunGraph {...props} />
		</ReactFlowProvider>
	);
}

/** RunGraph is the workflow's graph, colored by the state of the run. Keyboard users use the list of steps instead. */
function RunGraph({ run, record, outcomes, doc, selection }: PanesProps) {
	const { path, select } = selection;
	const laid = useMemo(() => layOut(doc), [doc]);
	const [maker] = useState(() => new NodeCache());
	const paths = useMemo(() => shownExecutions(record, doc.steps, path), [record, record.version, doc.steps, path]);
	const loops = useMemo(() => loopsOf(doc.steps), [doc.steps]);
	const totals = useTotals(run, record, loops, paths);
	const nodes = useMemo(
		() => maker.make({ laid, doc, record, outcomes, paths, selected: path, totals }),
		[maker, laid, doc, record, record.version, outcomes, paths, path, totals],
	);
	const edges = useMemo(() => edgesOf(laid, doc, record, paths), [laid, doc, record, record.version, paths]);
	const shown = path === "" ? undefined : nodes.find((node) => node.data.path === path)?.id;
	const [ready, setReady] = useState(false);
	const surface = useRef<HTMLDivElement>(null);
	const moved = useRef(false);
	return (
		<div ref={surface} className="relative min-h-0 flex-1">
			<ReactFlow
				{...flowOptions}
				aria-label="Graph of the steps"
				nodes={nodes}
				edges={edges}
				nodeTypes={nodeTypes}
				edgeTypes={edgeTypes}
				onNodeClick={(_, node: GraphNode) => node.data.path !== undefined && select(node.data.path)}
				nodesDraggable={false}
				nodesConnectable={false}
				elementsSelectable={false}
				onInit={() => setReady(true)}
				onMoveStart={(event) => {
					// Moves by script have no event.
					if (event) moved.current = true;
				}}
			>
				<Background gap={24} />
				<View surface={surface} moved={moved} laid={laid} shown={shown} ready={ready} />
				<ZoomControls fit="Zoom to fit" />
				<Overview nodes={nodes} ariaLabel="Minimap" nodeColor={colourOf} />
			</ReactFlow>
			<RoundPager record={record} steps={doc.steps} path={path} select={select} />
		</div>
	);
}

function loopsOf(steps: readonly Step[]): Step[] {
	return steps.flatMap((step) => (isBlock(step) ? [step, ...loopsOf(step.steps ?? [])] : []));
}

interface ViewProps {
	surface: RefObject<HTMLDivElement | null>;
	/** Whether the user has moved the graph. */
	moved: RefObject<boolean>;
	laid: Laid;
	shown: string | undefined;
	ready: boolean;
}

/**
 * View fits the graph into its pane, also when the pane changes, until the user moves the graph. After that it only
 * scrolls to the selected node.
 */
function View({ surface, moved, laid, shown, ready }: ViewProps) {
	const flow = useReactFlow();
	useEffect(() => {
		const host = surface.current;
		if (!host || !ready) return undefined;
		const show = () => {
			const target = boxIn(laid, shown) ?? boxIn(laid, startNode) ?? laid.bounds;
			if (!moved.current) void flow.setViewport(fittingView(host, laid.bounds, target));
			else if (shown) showNode(flow, host, shown);
		};
		show();
		// A banner that appears above the graph, or a window that is resized, leaves less space.
		const observer = new ResizeObserver(show);
		observer.observe(host);
		return () => observer.disconnect();
	}, [flow, surface, moved, laid, shown, ready]);
	return null;
}

function boxIn(laid: Laid, id: string | undefined): Box | undefined {
	const node = laid.nodes.find((one) => one.id === id);
	return node && { ...node.absolute, width: node.width, height: node.height };
}

function colourOf(node: GraphNode): string {
	const { status } = node.data;
	return status ? statusColor(status) : "var(--border)";
}
