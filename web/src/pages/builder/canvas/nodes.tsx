import { Handle, type NodeProps, type NodeTypes, Position } from "@xyflow/react";
import { type KeyboardEvent, memo, type ReactNode, useRef } from "react";
import { graphOf, useEditor, useEditorState, useReadOnly, useWarnings } from "@/pages/builder/state";
import {
	FrameNode,
	frameWords,
	Ports,
	StartNode,
	StepNode,
	stepLook,
	TriggerNode,
	triggerWords,
} from "@/shared/canvas";
import { useConnection } from "@/shared/connections/data";
import { warningOf } from "@/shared/connections/status";
import { executionOutcome } from "@/shared/run/outcome";
import { triggerName } from "@/shared/triggers";
import { find, type GraphNode, pathName, pathOf, stepOf, switchAction, title } from "@/shared/workflow/model";
import { cx } from "@/ui/class";
import { Duration } from "@/ui/time";
import { type CanvasNode, placeholders } from "./build";
import { useCurrent, useProblemCount, useRunOf } from "./current";
import { Placeholder } from "./placeholder";
import { Plus } from "./plus";

type Props = NodeProps<CanvasNode>;

/** Ignores the position, which does not affect the rendering. */
const sameAppearance = (a: Props, b: Props) => a.id === b.id && a.selected === b.selected && a.dragging === b.dragging;

function useNode(id: string): GraphNode | undefined {
	const last = useRef<GraphNode | undefined>(undefined);
	return useEditorState((state) => {
		const node = graphOf(state.history.present.doc).nodes.get(id);
		if (!sameNode(last.current, node)) last.current = node;
		return last.current;
	});
}

/** The graph is rebuilt on every edit; a node changes only with its step or its followers. */
function sameNode(a: GraphNode | undefined, b: GraphNode | undefined): boolean {
	return a?.step === b?.step && a?.followers.length === b?.followers.length && a?.block === b?.block;
}

/** The focusable part of a node. */
function NodeButton({ id, selected, round, children }: NodeButtonProps) {
	const editor = useEditor();
	const current = useCurrent(id);
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key !== " ") return;
		event.preventDefault();
		editor.select([id]);
	};
	return (
		<div
			role="button"
			onKeyDown={onKeyDown}
			tabIndex={current ? 0 : -1}
			aria-pressed={selected}
			data-node={id}
			className={cx("size-full outline-offset-[3px]", round ? "rounded-full" : "rounded-8")}
		>
			{children}
		</div>
	);
}

interface NodeButtonProps {
	id: string;
	selected: boolean;
	round?: boolean;
	children: ReactNode;
}

function Handles({ top = true }: { top?: boolean }) {
	return (
		<>
			{top && <Handle type="target" position={Position.Top} className="joint" aria-hidden />}
			<Handle type="source" position={Position.Bottom} className="joint" aria-hidden />
		</>
	);
}

/** The `+` below a step without followers. Inside a frame it uses the space at the bottom of the frame. */
function LeafPlus({ node }: { node: GraphNode }) {
	const editor = useEditor();
	// What is added after a switch goes onto one of its paths.
	if (useReadOnly() || node.followers.length > 0 || node.step.uses === switchAction) return null;
	const inner = node.block !== null;
	return (
		<>
			<span
				className={cx("absolute top-full left-1/2 w-[1.5px] -translate-x-1/2 bg-control/60", inner ? "h-4" : "h-5")}
			/>
			<Plus
				label={`Add a step after ${title(node.step)}`}
				onClick={() => editor.add({ kind: "step", place: { at: "after", step: node.id } })}
				className={cx(
					"absolute left-1/2 z-10 -translate-x-1/2",
					inner ? "top-[calc(100%+12px)]" : "top-[calc(100%+16px)]",
				)}
			/>
		</>
	);
}

function useRunStatus(id: string, uses?: string) {
	const { run, loop, faint } = useRunOf(id);
	const open = run?.finished_at === null;
	const note =
		loop?.label ??
		(run && (open || run.duration_ms > 0) ? (
			<Duration ms={run.duration_ms} since={open ? run.started_at : null} />
		) : undefined);
	return { status: run && executionOutcome({ ...run, type: uses }), note, faint };
}

const Step = memo(function Step({ id, selected }: Props) {
	const node = useNode(id);
	const problems = useProblemCount(id);
	const pinned = useEditorState((state) => Object.hasOwn(state.history.present.doc.pinned, id));
	const runStatus = useRunStatus(id, node?.step.uses);
	const [left] = useWarnings(id);
	const warning = warningOf(useConnection(node?.step.connection)) ?? left?.message;
	if (!node) return null;
	const { step } = node;
	return (
		<>
			<NodeButton id={id} selected={selected}>
				<StepNode
					{...stepLook(step)}
					uses={step.uses ?? "Choose an action"}
					problems={problems}
					pinned={pinned}
					warning={warning}
					selected={selected}
					{...runStatus}
				/>
			</NodeButton>
			<Handles />
			<LeafPlus node={node} />
		</>
	);
}, sameAppearance);

const Block = memo(function Block({ id, selected }: Props) {
	const editor = useEditor();
	const node = useNode(id);
	const problems = useProblemCount(id);
	const runStatus = useRunStatus(id);
	const readOnly = useReadOnly();
	if (!node) return null;
	const { step } = node;
	const kind = step.repeat ? "repeat" : "foreach";
	const words = frameWords(step);
	return (
		<>
			<NodeButton id={id} selected={selected}>
				<FrameNode
					kind={kind}
					{...stepLook(step)}
					words={words}
					problems={problems}
					selected={selected}
					{...runStatus}
				/>
			</NodeButton>
			{!readOnly && !step.steps?.length && (
				<button
					type="button"
					tabIndex={-1}
					onClick={() => editor.add({ kind: "step", place: { at: "end", block: id } })}
					className="nodrag absolute inset-x-6 top-16 bottom-6 rounded-8 border border-dashed border-control/60 font-medium text-muted hover:border-accent hover:text-accent"
				>
					+ Add the first step
				</button>
			)}
			<Handles />
			<LeafPlus node={node} />
		</>
	);
}, sameAppearance);

const Trigger = memo(function Trigger({ id, selected }: Props) {
	const trigger = useEditorState(({ history }) => history.present.doc.triggers.find((one) => `@${one.id}` === id));
	const problems = useProblemCount(id);
	const connection = typeof trigger?.connection === "string" ? trigger.connection : undefined;
	const [left] = useWarnings(id);
	const warning = warningOf(useConnection(connection)) ?? left?.message;
	if (!trigger) return null;
	const name = triggerName(trigger.type);
	const words = triggerWords(trigger);
	return (
		<>
			<NodeButton id={id} selected={selected} round>
				<TriggerNode
					type={trigger.type}
					name={name}
					words={words}
					problems={problems}
					warning={warning}
					selected={selected}
				/>
			</NodeButton>
			<Ports top={false} />
		</>
	);
}, sameAppearance);

const Start = memo(
	function Start() {
		const editor = useEditor();
		const bare = useEditorState((state) => state.history.present.doc.steps.length === 0);
		const readOnly = useReadOnly();
		return (
			<>
				<StartNode />
				<Ports />
				{!readOnly && !bare && (
					<Plus
						label="Add a branch from the start"
						onClick={() => editor.add({ kind: "step", place: { at: "branch", step: null } })}
						className="absolute top-1/2 left-full -translate-y-1/2"
					/>
				)}
			</>
		);
	},
	() => true,
);

/** A path of a switch that no step is on. Its id is the need of a step on it. */
const Exit = memo(
	function Exit({ id }: Props) {
		const editor = useEditor();
		const name = useEditorState(({ history }) => {
			const step = find(history.present.doc.steps, stepOf(id))?.step;
			return pathName(step, pathOf(id) ?? "");
		});
		return (
			<>
				<Ports bottom={false} />
				<span className="flex size-full flex-col items-center">
					<span
						title={name}
						className="max-w-full truncate rounded-full border bg-surface px-2 text-12 leading-[18px] text-muted"
					>
						{name}
					</span>
					<Plus
						label={`Add a step on the path ${name}`}
						onClick={() => editor.add({ kind: "step", place: { at: "after", step: id } })}
					/>
				</span>
			</>
		);
	},
	(a, b) => a.id === b.id,
);

const GhostNode = memo(
	function GhostNode({ id }: Props) {
		const editor = useEditor();
		const current = useCurrent(id);
		const step = id === placeholders.step;
		const add = () => editor.add(step ? { kind: "step", place: { at: "end", block: null } } : { kind: "trigger" });
		if (id === placeholders.more) return <Plus label="Add a trigger" onClick={add} />;
		return (
			<Placeholder id={id} current={current} onClick={add} round={!step}>
				{step ? "What happens first?" : "What starts this workflow?"}
			</Placeholder>
		);
	},
	(a, b) => a.id === b.id,
);

export const nodeTypes: NodeTypes = {
	step: Step,
	block: Block,
	trigger: Trigger,
	start: Start,
	exit: Exit,
	ghost: GhostNode,
};
