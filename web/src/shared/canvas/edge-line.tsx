import { BaseEdge, getSmoothStepPath, type Position } from "@xyflow/react";
import { memo } from "react";

export interface EdgeLineProps {
	sourceX: number;
	sourceY: number;
	sourcePosition: Position;
	targetX: number;
	targetY: number;
	targetPosition: Position;
	/** travelled: the run took this edge; faint: it did not; error: it is taken after a failure. */
	tone?: "plain" | "travelled" | "faint" | "accent" | "error";
	/** The points where the edge bends around other nodes. */
	bends?: readonly Spot[];
	/** The width of the clickable area; 0 if the edge is not interactive. */
	reach?: number;
}

interface Spot {
	readonly x: number;
	readonly y: number;
}

const strokes = {
	plain: "var(--control)",
	travelled: "var(--control)",
	faint: "var(--border)",
	accent: "var(--accent)",
	error: "var(--failed)",
};

/** edgePath returns the path of an edge and the point in its middle. */
export function edgePath({ bends, ...ends }: EdgeLineProps): [path: string, x: number, y: number] {
	if (bends && bends.length > 0) return bentPath(ends, bends);
	const [path, x, y] = getSmoothStepPath({ ...ends, borderRadius: 8 });
	return [path, x, y];
}

/** Goes halfway down, across, and down again, from each point to the next. */
function bentPath(ends: EdgeLineProps, bends: readonly Spot[]): [path: string, x: number, y: number] {
	const stops = [{ x: ends.sourceX, y: ends.sourceY }, ...bends, { x: ends.targetX, y: ends.targetY }];
	const corners: Spot[] = [];
	for (const [i, to] of stops.entries()) {
		const from = stops[i - 1];
		if (from && from.x !== to.x) {
			const y = (from.y + to.y) / 2;
			corners.push({ x: from.x, y }, { x: to.x, y });
		}
	}
	const line = [stops[0] as Spot, ...corners, stops.at(-1) as Spot];
	const path = line.map((at, i) => corner(line[i - 1], at, line[i + 1])).join("");
	const { x, y } = longest(line);
	return [path, x, y];
}

/** A corner with a radius of 8, or less if its sides are short. */
function corner(before: Spot | undefined, at: Spot, after: Spot | undefined): string {
	if (!before) return `M${at.x} ${at.y}`;
	if (!after) return `L${at.x} ${at.y}`;
	const into = towards(at, before);
	const out = towards(at, after);
	return `L${into.x} ${into.y}Q${at.x} ${at.y} ${out.x} ${out.y}`;
}

function towards(at: Spot, other: Spot): Spot {
	const far = Math.hypot(other.x - at.x, other.y - at.y);
	const part = far === 0 ? 0 : Math.min(8, far / 2) / far;
	return { x: at.x + (other.x - at.x) * part, y: at.y + (other.y - at.y) * part };
}

/** The middle of the longest segment. */
function longest(line: readonly Spot[]): Spot {
	let best = { x: 0, y: 0, length: -1 };
	for (const [i, to] of line.entries()) {
		const from = line[i - 1];
		if (!from) continue;
		const length = Math.hypot(to.x - from.x, to.y - from.y);
		if (length > best.length) best = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2, length };
	}
	return best;
}

/** EdgeLine draws a connection: down, across and down again, with a small arrow. */
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
