import type { Edge, Node } from "@xyflow/react";
import type { StepNodeProps } from "@/builder/canvas/view";
import { bare } from "@/builder/canvas/view";
import type { Laid } from "@/builder/layout/layout";
import { startNode } from "@/builder/layout/size";
import { type Doc, isBlock, type Step, type Trigger, title, triggerNode, walk } from "@/builder/model";
import type { Status } from "@/ui/status";
import type { RunRecord, StepHead } from "./model/record";
import { roundsOf, tally } from "./model/rounds";

export interface NodeData extends Record<string, unknown> {
	/** The execution that is drawn. */
	path?: string;
	status?: Status;
	selected: boolean;
	step?: Step;
	head?: StepHead;
	trigger?: Trigger;
	fired?: boolean;
	/** Of a loop: how its rounds stand. */
	tally?: string;
	look?: Pick<StepNodeProps, "name" | "condition" | "attempts" | "continues">;
}

export type GraphNode = Node<NodeData>;

export interface Drawn {
	laid: Laid;
	doc: Pick<Doc, "triggers" | "steps" | "layout">;
	record: RunRecord;
	paths: ReadonlyMap<string, string>;
	selected: string;
	totals: ReadonlyMap<string, number | undefined>;
}

/** NodeMaker makes the nodes of a drawing, and hands out the same ones while nothing about them changed. */
export class NodeMaker {
	private made = new Map<string, { sign: string; node: GraphNode }>();

	make(drawn: Drawn): GraphNode[] {
		const steps = new Map([...walk(drawn.doc.steps)].map((spot) => [spot.step.id, spot.step]));
		const triggers = new Map(drawn.doc.triggers.map((trigger) => [triggerNode(trigger.id), trigger]));
		const next = new Map<string, { sign: string; node: GraphNode }>();
		for (const box of drawn.laid.nodes) {
			const data = dataOf(drawn, box.id, steps.get(box.id), triggers.get(box.id));
			const { head } = data;
			const sign = [box.x, box.y, box.width, box.height, data.path, data.selected, data.tally, data.fired]
				.concat(head ? [head.status, head.attempt, head.finished_at ?? ""] : [])
				.join("|");
			const old = this.made.get(box.id);
			const node: GraphNode = {
				id: box.id,
				type: box.kind,
				position: { x: box.x, y: box.y },
				width: box.width,
				height: box.height,
				...(box.parent !== null && { parentId: box.parent }),
				data,
			};
			next.set(box.id, old?.sign === sign ? old : { sign, node });
		}
		this.made = next;
		return [...next.values()].map((one) => one.node);
	}
}

function dataOf(drawn: Drawn, id: string, step: Step | undefined, trigger: Trigger | undefined): NodeData {
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
		status: head?.status,
		tally: rounds && head ? tally(rounds, totals.get(id)) : undefined,
		look: step && {
			name: title(step),
			condition: step.if === undefined ? undefined : bare(String(step.if)),
			attempts: step.retry?.max_attempts,
			continues: step.on_error === "continue",
		},
	};
}

const reached = new Set<Status>(["running", "waiting", "succeeded", "failed", "cancelled"]);

/** edgesOf are the lines; those that the run did not come along are faint. */
export function edgesOf(laid: Laid, record: RunRecord, paths: ReadonlyMap<string, string>): Edge[] {
	const ran = (id: string) => {
		const status = record.steps.get(paths.get(id) ?? id)?.status;
		return status !== undefined && reached.has(status);
	};
	return laid.edges.map((edge) => ({
		id: edge.id,
		source: edge.source,
		target: edge.target,
		type: "line",
		data: {
			travelled:
				edge.kind === "trigger"
					? `@${record.head?.trigger.id}` === edge.source
					: (edge.kind === "start" || ran(edge.source)) && ran(edge.target),
		},
		// Lines inside a frame would otherwise lie under it.
		zIndex: edge.block === null ? 0 : 1,
	}));
}
