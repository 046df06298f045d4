import { BaseEdge, getSmoothStepPath, type Position } from "@xyflow/react";
import { memo } from "react";

export interface EdgeLineProps {
	sourceX: number;
	sourceY: number;
	sourcePosition: Position;
	targetX: number;
	targetY: number;
	targetPosition: Position;
	/** travelled: the run came along here; faint: it did not. */
	tone?: "plain" | "travelled" | "faint" | "accent";
	/** How far from the line a pointer still meets it; 0 where nothing can be done with it. */
	reach?: number;
}

const strokes = {
	plain: "var(--control)",
	travelled: "var(--control)",
	faint: "var(--border)",
	accent: "var(--accent)",
};

/** edgePath is the line of an edge, and the point in its middle for what lies on it. */
export function edgePath(ends: EdgeLineProps): [path: string, x: number, y: number] {
	const [path, x, y] = getSmoothStepPath({ ...ends, borderRadius: 8 });
	return [path, x, y];
}

/** EdgeLine is how a connection looks: down, across and down again, with a small arrow. */
export const EdgeLine = memo(function EdgeLine({ tone = "plain", reach = 0, ...ends }: EdgeLineProps) {
	const [path] = edgePath(ends);
	const { targetX: x, targetY: y } = ends;
	return (
		<>
			<BaseEdge
				path={path}
				interactionWidth={reach}
				style={{
					stroke: strokes[tone],
					strokeWidth: tone === "accent" ? 2 : 1.5,
					strokeDasharray: tone === "faint" ? "4 4" : undefined,
				}}
			/>
			<path d={`M${x - 4} ${y - 6}L${x} ${y}L${x + 4} ${y - 6}Z`} fill={strokes[tone]} />
		</>
	);
});
