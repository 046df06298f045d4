import type { Edge, Node } from "@xyflow/react";
import { stepLook } from "@/shared/canvas";
import { boxOf, type LineData, linesOf } from "@/shared/canvas/elements";
import type { Laid } from "@/shared/workflow/layout/layout";
import { startNode } from "@/shared/workflow/layout/size";
import {
	type Doc,
	errorPath,
	find,
	isBlock,
	pathName,
	type Step,
	type Trigger,
	triggerNode,
	walk,
} from "@/shared/workflow/model";
import type { Outcome, Status } from "@/ui/status";
import { type Outcomes, outcomeOf } from "./model/outcome";
import type { RunRecord, StepHead } from "./model/record";
import { type Rounds, roundsOf, tally } from "./model/rounds";

export interface NodeData extends Record<string, unknown> {
	/** The path of the execution that the node shows. */
	path?: string;
	status?: Outcome;
	selected: boolean;
	step?: Step;
	head?: StepHead;
	trigger?: Trigger;
	fired?: boolean;
	/** For a loop: the progress of its rounds. */
	tally?: string;
	look?: ReturnType<typeof stepLook>;
}

export type GraphNode = Node<NodeData>;
/** With whether the run came along it, and the name of its path. */
export type GraphEdge = Edge<LineData & { travelled: boolean; name: string | undefined }>;

export interface GraphInput {
	laid: Laid;
	doc: Pick<Doc, "triggers" | "steps" | "layout">;
	record: RunRecord;
	outcomes: Outcomes;
	paths: ReadonlyMap<string, string>;
	selected: string;
	totals: ReadonlyMap<string, number | undefined>;
}

/** NodeCache builds the nodes of the graph and reuses those that have not changed. */
export class NodeCache {
	private made = new Map<string, { sign: string; node: GraphNode }>();

	make(drawn: GraphInput): GraphNode[] {
		const steps = new Map([...walk(drawn.doc.steps)].map((spot) => [spot.step.id, spot.step]));
		const triggers = new Map(drawn.doc.triggers.map((trigger) => [triggerNode(trigger.id), trigger]));
		const next = new Map<string, { sign: string; node: GraphNode }>();
		for (const box of drawn.laid.nodes) {
			const data = dataOf(drawn, box.id, steps.get(box.id), triggers.get(box.id));
			const { head, status } = data;
			const sign = [box.x, box.y, box.width, box.height, data.path, data.selected, data.tally, data.fired]
				.concat(head ? [status, head.attempt, head.finished_at ?? ""] : [])
				.join("|");
			const old = this.made.get(box.id);
			const node: GraphNode = { ...boxOf(box), data };
			next.set(box.id, old?.sign === sign ? old : { sign, node });
		}
		this.made = next;
		return [...next.values()].map((one) => one.node);
	}
}

function dataOf(drawn: GraphInput, id: string, step: Step | undefined, trigger: Trigger | undefined): NodeData {
	const { record, selected, totals } = drawn;
	if (id === startNode) return { path: "", selected: selected === "" };
	if (trigger) return { path: "", selected: false, trigger, fired: record.head?.trigger.id === trigger.id };
	const path = drawn.paths.get(id) ?? id;
	const head = record.steps.get(path);
	const rounds = step && isBlock(step) ? roundsOf(record, path, step) : undefined;
	return {
		path,
		selected: path === selected,
		step,
		head,
		status: head && outcomeOf(head, drawn.outcomes),
		tally: rounds && head ? loopNote(rounds, totals.get(id), drawn.outcomes.handled.get(path)) : undefined,
		look: step && stepLook(step),
	};
}

function loopNote(rounds: Rounds, total: number | undefined, handled: number | undefined): string {
	const words = tally(rounds, total);
	return handled === undefined ? words : `${words} · ${handled} handled`;
}

const reached = new Set<Status>(["running", "waiting", "succeeded", "failed", "cancelled"]);

type Steps = Pick<Doc, "steps">;

/** edgesOf returns the edges. Edges that the run did not take are faint. */
export function edgesOf(
	laid: Laid,
	{ steps }: Steps,
	record: RunRecord,
	paths: ReadonlyMap<string, string>,
): GraphEdge[] {
	const statusOf = (id: string) => record.steps.get(paths.get(id) ?? id)?.status;
	const ran = (id: string) => {
		const status = statusOf(id);
		return status !== undefined && reached.has(status);
	};
	const took = ({ kind, path }: LineData, from: string) => {
		if (kind === "start") return true;
		return path === errorPath ? statusOf(from) === "failed" : ran(from);
	};
	return linesOf(laid).map(({ data, ...line }) => ({
		...line,
		type: "line",
		data: {
			...data,
			name: data.path === undefined ? undefined : pathName(find(steps, line.source)?.step, data.path),
			travelled:
				data.kind === "trigger"
					? `@${record.head?.trigger.id}` === line.source
					: took(data, line.source) && ran(line.target),
		},
	}));
}
