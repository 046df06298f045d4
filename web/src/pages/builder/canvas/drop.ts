import { Position } from "@xyflow/react";
import { create } from "zustand";
import { edgePath } from "@/shared/canvas/edge-line";
import type { Laid, LaidEdge, LaidNode } from "@/shared/workflow/layout/layout";
import { startNode } from "@/shared/workflow/layout/size";

/** The edge under the dragged step. Only that edge re-renders while dragging. */
export const useDropping = create<{ edge: string | null }>(() => ({ edge: null }));

const dropRadius = 40;

/** The edge of the same list whose middle a node covers, except the node's own edges. */
export function edgeUnder(
	laid: Laid,
	dragged: ReadonlySet<string>,
	block: string | null,
	middle: { readonly x: number; readonly y: number },
): string | null {
	const boxes = new Map(laid.nodes.map((one) => [one.id, one]));
	let best: { id: string; far: number } | null = null;
	for (const edge of laid.edges) {
		if (
			edge.kind === "trigger" ||
			edge.kind === "exit" ||
			edge.block !== block ||
			dragged.has(edge.source) ||
			dragged.has(edge.target)
		)
			continue;
		const from = boxes.get(edge.source);
		const to = boxes.get(edge.target);
		if (!from || !to) continue;
		const at = middleOf(from, to, edge);
		const far = Math.hypot(at.x - middle.x, (at.y - middle.y) * 1.5);
		if (far < dropRadius * 2 && (!best || far < best.far)) best = { id: edge.id, far };
	}
	return best?.id ?? null;
}

/** The position of the `+` of an edge. */
function middleOf(from: LaidNode, to: LaidNode, { bends }: LaidEdge): { x: number; y: number } {
	const [, x, y] = edgePath({
		sourceX: from.absolute.x + from.width / 2,
		sourceY: from.absolute.y + from.height,
		sourcePosition: Position.Bottom,
		targetX: to.absolute.x + to.width / 2,
		targetY: to.absolute.y,
		targetPosition: Position.Top,
		bends,
	});
	return { x, y };
}

/** The need and the step of an edge by its id; null for the start. */
export function endsOf(id: string): { from: string | null; to: string } {
	const [from, to] = id.split("->") as [string, string];
	return { from: from === startNode ? null : from, to };
}
