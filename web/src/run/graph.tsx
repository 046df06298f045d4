import "@/builder/canvas/view/flow.css";
import { Background, MiniMap, type Node, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import { useEffect, useMemo, useRef, useState } from "react";
import { type Laid, layOut } from "@/builder/layout/layout";
import { startNode } from "@/builder/layout/size";
import { isBlock, type Step } from "@/builder/model";
import { IconButton } from "@/ui/button";
import { ChevronLeftIcon, ChevronRightIcon, icon, PlusIcon } from "@/ui/icons";
import { edgesOf, type GraphNode, NodeMaker } from "./graph-data";
import { edgeTypes, nodeTypes } from "./graph-nodes";
import { chosen } from "./model/chosen";
import { roundOf } from "./model/path";
import { neighbour, placeIn, roundsOf } from "./model/rounds";
import type { PanesProps } from "./panes";
import { loopAt } from "./selection";
import { useTotals } from "./use-run";

const MinusIcon = icon("M3 8h10");
const FitIcon = icon("M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10");

export default function Graph(props: PanesProps) {
	return (
		<ReactFlowProvider>
			<Drawing {...props} />
		</ReactFlowProvider>
	);
}

/** Drawing is the workflow's graph in the colours of the run. The list of steps says the same to the keyboard. */
function Drawing({ run, record, doc, selection }: PanesProps) {
	const { path, select } = selection;
	const laid = useMemo(() => layOut(doc), [doc]);
	const [maker] = useState(() => new NodeMaker());
	const paths = useMemo(() => chosen(record, doc.steps, path), [record, record.version, doc.steps, path]);
	const loops = useMemo(() => loopsOf(doc.steps), [doc.steps]);
	const totals = useTotals(run, record, loops, paths);
	const nodes = useMemo(
		() => maker.make({ laid, doc, record, paths, selected: path, totals }),
		[maker, laid, doc, record, record.version, paths, path, totals],
	);
	const edges = useMemo(() => edgesOf(laid, record, paths), [laid, record, record.version, paths]);
	const shown = path === "" ? undefined : nodes.find((node) => node.data.path === path)?.id;
	const [ready, setReady] = useState(false);
	return (
		<div className="relative min-h-0 flex-1">
			<ReactFlow
				aria-label="Graph of the steps"
				nodes={nodes}
				edges={edges}
				nodeTypes={nodeTypes}
				edgeTypes={edgeTypes}
				onNodeClick={(_, node: GraphNode) => node.data.path !== undefined && select(node.data.path)}
				nodesDraggable={false}
				nodesConnectable={false}
				nodesFocusable={false}
				edgesFocusable={false}
				elementsSelectable={false}
				deleteKeyCode={null}
				disableKeyboardA11y
				minZoom={0.1}
				maxZoom={1.5}
				onInit={() => setReady(true)}
			>
				<Background gap={24} />
				<View laid={laid} shown={shown} ready={ready} />
				<Overview count={nodes.length} />
			</ReactFlow>
			<RoundPager record={record} steps={doc.steps} path={path} select={select} />
		</div>
	);
}

function loopsOf(steps: readonly Step[]): Step[] {
	return steps.flatMap((step) => (isBlock(step) ? [step, ...loopsOf(step.steps ?? [])] : []));
}

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** View begins readable rather than complete, and follows what is selected elsewhere. */
function View({ laid, shown, ready }: { laid: Laid; shown: string | undefined; ready: boolean }) {
	const flow = useReactFlow();
	const box = useRef<HTMLDivElement>(null);
	const began = useRef(false);
	useEffect(() => {
		const pane = box.current?.closest(".react-flow");
		if (!pane || !ready) return;
		const { clientWidth: width, clientHeight: height } = pane;
		const target = laid.nodes.find((node) => node.id === shown);
		if (!began.current) {
			began.current = true;
			const fit = Math.min((width - 48) / laid.bounds.width, (height - 48) / laid.bounds.height, 1);
			const zoom = Math.max(fit, 0.65);
			const { x, y } = laid.bounds;
			const first = laid.nodes.find((node) => node.id === startNode);
			const centre = target ?? (laid.bounds.width * zoom > width ? first : undefined);
			const middle = centre ? centre.absolute.x + centre.width / 2 : x + laid.bounds.width / 2;
			const above = target && fit < zoom ? target.absolute.y - (height / zoom - target.height) / 2 : y;
			void flow.setViewport({ x: width / 2 - middle * zoom, y: (above === y ? 56 : 0) - above * zoom, zoom });
			return;
		}
		if (!target) return;
		const view = flow.getViewport();
		const left = target.absolute.x * view.zoom + view.x;
		const top = target.absolute.y * view.zoom + view.y;
		const inside = left >= 0 && top >= 0 && left + 240 * view.zoom <= width && top + 64 * view.zoom <= height;
		if (inside) return;
		const [x, y] = [target.absolute.x + target.width / 2, target.absolute.y + Math.min(target.height, 200) / 2];
		void flow.setCenter(x, y, { zoom: view.zoom, duration: calm() ? 0 : 180 });
	}, [flow, laid, shown, ready]);
	return (
		<div
			ref={box}
			className="absolute bottom-3 left-3 z-10 flex flex-col rounded-8 border bg-surface p-0.5 shadow-lift"
		>
			<IconButton
				icon={PlusIcon}
				label="Zoom in"
				small
				onClick={() => void flow.zoomIn({ duration: calm() ? 0 : 120 })}
			/>
			<IconButton
				icon={MinusIcon}
				label="Zoom out"
				small
				onClick={() => void flow.zoomOut({ duration: calm() ? 0 : 120 })}
			/>
			<IconButton
				icon={FitIcon}
				label="Show everything"
				small
				onClick={() => void flow.fitView({ padding: 0.1, maxZoom: 1, duration: calm() ? 0 : 180 })}
			/>
		</div>
	);
}

/** Overview is the small map of a large graph, after the graph itself. */
function Overview({ count }: { count: number }) {
	const [ready, setReady] = useState(false);
	useEffect(() => {
		const timer = setTimeout(() => setReady(true), 300);
		return () => clearTimeout(timer);
	}, []);
	if (!ready || count < 30) return null;
	return <MiniMap pannable zoomable ariaLabel="Small map" nodeColor={colourOf} style={{ width: 140, height: 100 }} />;
}

function colourOf(node: Node): string {
	const { status } = (node as GraphNode).data;
	return status ? `var(--${status})` : "var(--border)";
}

type PagerProps = Pick<PanesProps, "record"> & { steps: readonly Step[]; path: string; select: (path: string) => void };

/** RoundPager says which round of a loop is drawn, and goes to the others. */
function RoundPager({ record, steps, path, select }: PagerProps) {
	const loop = loopAt(steps, path);
	if (!loop) return null;
	const rounds = roundsOf(record, loop.path, loop.step);
	const shown = placeIn(rounds, path);
	const round = rounds.list[shown ?? 0];
	if (!round) return null;
	const from = shown === undefined ? round.path : path;
	const go = (way: 1 | -1) => {
		const next = neighbour(rounds, from, way);
		if (next) select(next);
	};
	return (
		<div className="absolute top-3 left-3 flex items-center gap-1 rounded-8 border bg-surface p-0.5 pl-3 shadow-lift">
			<span className="tabular">
				{loop.step.name ?? loop.step.id} · round {(roundOf(round.path)?.index ?? 0) + 1}
			</span>
			<IconButton icon={ChevronLeftIcon} label="Previous round, [" small onClick={() => go(-1)} />
			<IconButton icon={ChevronRightIcon} label="Next round, ]" small onClick={() => go(1)} />
		</div>
	);
}
