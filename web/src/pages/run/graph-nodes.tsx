import type { EdgeProps, NodeProps } from "@xyflow/react";
import { memo } from "react";
import {
	EdgeLine,
	FrameNode,
	frameWords,
	PathLabel,
	Ports,
	StartNode,
	StepNode,
	TriggerNode,
	triggerWords,
} from "@/shared/canvas";
import { lineEnds } from "@/shared/canvas/elements";
import { triggerName } from "@/shared/triggers";
import { errorPath } from "@/shared/workflow/model";
import { Duration } from "@/ui/time";
import type { GraphEdge, GraphNode } from "./graph-data";
import type { StepHead } from "./model/record";

function StepDuration({ head }: { head: StepHead | undefined }) {
	if (!head || head.status === "skipped") return null;
	return <Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />;
}

const StepBox = memo(function StepBox({ data }: NodeProps<GraphNode>) {
	const { step, head, look, status, selected } = data;
	if (!step || !look) return null;
	return (
		<StepNode
			{...look}
			uses={step.uses ?? ""}
			status={status}
			note={<StepDuration head={head} />}
			selected={selected}
			faint={!status}
		>
			<Ports />
		</StepNode>
	);
});

const BlockBox = memo(function BlockBox({ data }: NodeProps<GraphNode>) {
	const { step, look, status, selected, tally } = data;
	if (!step || !look) return null;
	return (
		<FrameNode
			{...look}
			kind={step.repeat ? "repeat" : "foreach"}
			words={frameWords(step)}
			status={status}
			note={tally}
			selected={selected}
			faint={!status}
		>
			<Ports />
		</FrameNode>
	);
});

const TriggerBox = memo(function TriggerBox({ data }: NodeProps<GraphNode>) {
	const { trigger, fired } = data;
	if (!trigger) return null;
	return (
		<TriggerNode
			type={trigger.type}
			name={triggerName(trigger.type)}
			words={triggerWords(trigger)}
			fired={fired}
			faint={!fired}
		>
			<Ports top={false} />
		</TriggerNode>
	);
});

const StartBox = memo(function StartBox({ data }: NodeProps<GraphNode>) {
	return (
		<StartNode selected={data.selected}>
			<Ports />
		</StartNode>
	);
});

const Line = memo(function Line(props: EdgeProps<GraphEdge>) {
	const ends = lineEnds(props);
	const { travelled, path, name } = props.data ?? {};
	const error = path === errorPath;
	return (
		<>
			<EdgeLine {...ends} tone={!travelled ? "faint" : error ? "error" : "travelled"} />
			{name !== undefined && (
				<PathLabel name={name} error={error} faint={!travelled} x={ends.targetX} y={ends.targetY} />
			)}
		</>
	);
});

export const nodeTypes = { step: StepBox, block: BlockBox, trigger: TriggerBox, start: StartBox };
export const edgeTypes = { line: Line };
