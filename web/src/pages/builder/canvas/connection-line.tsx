import { type ConnectionLineComponentProps, getSmoothStepPath } from "@xyflow/react";

/** ConnectionLine is the edge being drawn: red where it may not end. */
export function ConnectionLine({
	fromX,
	fromY,
	fromPosition,
	toX,
	toY,
	toPosition,
	connectionStatus,
}: ConnectionLineComponentProps) {
	const [path] = getSmoothStepPath({
		sourceX: fromX,
		sourceY: fromY,
		sourcePosition: fromPosition,
		targetX: toX,
		targetY: toY,
		targetPosition: toPosition,
		borderRadius: 8,
	});
	const stroke = connectionStatus === "invalid" ? "var(--failed)" : "var(--accent)";
	return (
		<path d={path} fill="none" stroke={stroke} strokeWidth={2} strokeDasharray={connectionStatus ? undefined : "4 4"} />
	);
}
