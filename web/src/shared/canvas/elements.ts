import type { EdgeProps } from "@xyflow/react";
import type { Laid, LaidEdge, LaidNode } from "@/shared/workflow/layout/layout";
import { startNode } from "@/shared/workflow/layout/size";

// Turns a layout into the parts of React Flow's nodes and edges that every canvas shares.

/** boxOf returns the kind, position and size of a node. */
export function boxOf({ id, kind, parent, x, y, width, height }: LaidNode) {
	return {
		id,
		type: kind,
		position: { x, y },
		width,
		height,
		...(parent !== null && { parentId: parent }),
	};
}

export interface LineData extends Record<string, unknown> {
	readonly kind: LaidEdge["kind"];
	/** The path out of the source; undefined for the step as a whole. */
	readonly path: string | undefined;
	readonly block: string | null;
	/** The edge of a trigger directly above the bar is straight. */
	readonly straight: boolean;
	readonly bends?: LaidEdge["bends"];
}

/** linesOf returns the edges of a layout. */
export function linesOf(laid: Laid) {
	const boxes = new Map(laid.nodes.map((one) => [one.id, one]));
	const bar = boxes.get(startNode);
	return laid.edges.map(({ id, source, target, path, kind, block, bends }) => {
		const from = boxes.get(source);
		const middle = from ? from.x + from.width / 2 : 0;
		const over = bar !== undefined && middle > bar.x + 16 && middle < bar.x + bar.width - 16;
		const data: LineData = { kind, path, block, straight: kind === "trigger" && over, bends };
		// Edges inside a frame would otherwise be hidden behind it.
		return { id, source, target, data, zIndex: block === null ? 0 : 1 };
	});
}

type Ends = Pick<EdgeProps, "sourceX" | "sourceY" | "sourcePosition" | "targetX" | "targetY" | "targetPosition">;

/** lineEnds returns where a line starts, bends and ends. */
export function lineEnds(props: Ends & { data?: LineData }) {
	const { sourceX, sourceY, sourcePosition, targetY, targetPosition, data } = props;
	const targetX = data?.straight ? sourceX : props.targetX;
	return { sourceX, sourceY, sourcePosition, targetX, targetY, targetPosition, bends: data?.bends };
}
