import { Handle, type NodeProps, type NodeTypes, Position } from "@xyflow/react";
import { type KeyboardEvent, memo, type ReactNode } from "react";
import type { GraphNode } from "@/builder/model";
import { title } from "@/builder/model";
import { graphOf, useEditor, useEditorState, useFixed } from "@/builder/state";
import { cx } from "@/ui/class";
import { duration } from "@/ui/time";
import { type CanvasNode, ghosts } from "./build";
import { useCurrent, useProblemCount, useRunOf } from "./current";
import { Ghost } from "./ghost";
import { Plus } from "./plus";
import {
	bare,
	FrameNode,
	frameWords,
	Ports,
	StartNode,
	StepNode,
	TriggerNode,
	triggerName,
	triggerWords,
} from "./view";

type Props = NodeProps<CanvasNode>;

/** Only these two say how a node looks; where it is does not draw it again. */
const unmoved = (a: Props, b: Props) => a.id === b.id && a.selected === b.selected && a.dragging === b.dragging;

function useNode(id: string): GraphNode | undefined {
	return useEditorState((state) => graphOf(state.history.present.doc).nodes.get(id), sameNode);
}

/** The graph is made anew with every edit: a node is another only if its step or its followers are. */
function sameNode(a: GraphNode | undefined, b: GraphNode | undefined): boolean {
	return a?.step === b?.step && a?.followers.length === b?.followers.length && a?.block === b?.block;
}

/** The part of a node that takes the focus and says what it is. */
function Face({ id, selected, round, children }: FaceProps) {
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

interface FaceProps {
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

/** The `+` under a step that nothing comes after. Inside a frame it stands in the frame's own padding. */
function LeafPlus({ node }: { node: GraphNode }) {
	const editor = useEditor();
	if (useFixed() || node.followers.length > 0) return null;
	const inner = node.block !== null;
	return (
		<>
			{!inner && <span className="absolute top-full left-1/2 h-5 w-[1.5px] -translate-x-1/2 bg-control/60" />}
			<Plus
				label={`Add a step after ${title(node.step)}`}
				onClick={() => editor.add({ kind: "step", place: { at: "after", step: node.id } })}
				className={cx(
					"absolute left-1/2 z-10 -translate-x-1/2",
					inner ? "top-[calc(100%-4px)]" : "top-[calc(100%+16px)]",
				)}
			/>
		</>
	);
}

function useStanding(id: string) {
	const { run, loop, faint } = useRunOf(id);
	const note = loop?.label ?? (run && run.duration_ms > 0 ? duration(run.duration_ms) : undefined);
	return { status: run?.status, note, faint };
}

const Step = memo(function Step({ id, selected }: Props) {
	const node = useNode(id);
	const problems = useProblemCount(id);
	const pinned = useEditorState((state) => Object.hasOwn(state.history.present.doc.pinned, id));
	const standing = useStanding(id);
	if (!node) return null;
	const { step } = node;
	return (
		<>
			<Face id={id} selected={selected}>
				<StepNode
					name={title(step)}
					uses={step.uses ?? "Choose an action"}
					condition={conditionOf(step.if)}
					problems={problems}
					attempts={step.retry?.max_attempts}
					continues={step.on_error === "continue"}
					pinned={pinned}
					selected={selected}
					{...standing}
				/>
			</Face>
			<Handles />
			<LeafPlus node={node} />
		</>
	);
}, unmoved);

const Block = memo(function Block({ id, selected }: Props) {
	const editor = useEditor();
	const node = useNode(id);
	const problems = useProblemCount(id);
	const standing = useStanding(id);
	const fixed = useFixed();
	if (!node) return null;
	const { step } = node;
	const kind = step.repeat ? "repeat" : "foreach";
	const words = frameWords(step);
	return (
		<>
			<Face id={id} selected={selected}>
				<FrameNode
					kind={kind}
					name={title(step)}
					words={words}
					condition={conditionOf(step.if)}
					problems={problems}
					attempts={step.retry?.max_attempts}
					continues={step.on_error === "continue"}
					selected={selected}
					{...standing}
				/>
			</Face>
			{!fixed && !step.steps?.length && (
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
}, unmoved);

const Trigger = memo(function Trigger({ id, selected }: Props) {
	const trigger = useEditorState(({ history }) => history.present.doc.triggers.find((one) => `@${one.id}` === id));
	const problems = useProblemCount(id);
	if (!trigger) return null;
	const name = triggerName(trigger.type);
	const words = triggerWords(trigger);
	return (
		<>
			<Face id={id} selected={selected} round>
				<TriggerNode type={trigger.type} name={name} words={words} problems={problems} selected={selected} />
			</Face>
			<Ports top={false} />
		</>
	);
}, unmoved);

const Start = memo(
	function Start() {
		const editor = useEditor();
		const bare = useEditorState((state) => state.history.present.doc.steps.length === 0);
		const fixed = useFixed();
		return (
			<>
				<StartNode />
				<Ports />
				{!fixed && !bare && (
					<Plus
						label="Add a branch that begins at the start"
						onClick={() => editor.add({ kind: "step", place: { at: "branch", step: null } })}
						className="absolute top-1/2 left-full -translate-y-1/2"
					/>
				)}
			</>
		);
	},
	() => true,
);

const GhostNode = memo(
	function GhostNode({ id }: Props) {
		const editor = useEditor();
		const current = useCurrent(id);
		const step = id === ghosts.step;
		const add = () => editor.add(step ? { kind: "step", place: { at: "end", block: null } } : { kind: "trigger" });
		if (id === ghosts.more) return <Plus label="Add a trigger" onClick={add} />;
		return (
			<Ghost id={id} current={current} onClick={add} round={!step}>
				{step ? "What happens first?" : "What starts this workflow?"}
			</Ghost>
		);
	},
	(a, b) => a.id === b.id,
);

export const nodeTypes: NodeTypes = { step: Step, block: Block, trigger: Trigger, start: Start, ghost: GhostNode };

function conditionOf(condition: string | boolean | undefined): string | undefined {
	return condition === undefined ? undefined : bare(String(condition));
}
