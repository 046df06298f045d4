import { EdgeLabelRenderer } from "@xyflow/react";
import { cx } from "@/ui/class";

interface PathLabelProps {
	name: string;
	/** It is the path that is taken after a failure. */
	error: boolean;
	faint?: boolean;
	/** The end of the edge. */
	x: number;
	y: number;
}

/** PathLabel names the path of an edge, right above the step that it leads to. */
export function PathLabel({ name, error, faint, x, y }: PathLabelProps) {
	return (
		<EdgeLabelRenderer>
			<span
				title={name}
				className={cx(
					"nodrag nopan pointer-events-auto absolute max-w-[200px] truncate rounded-full border bg-surface px-2 text-12 leading-[18px]",
					error ? "text-failed" : "text-muted",
					faint && "opacity-60",
				)}
				style={{ transform: `translate(${x}px, ${y - 8}px) translate(-50%, -100%)` }}
			>
				{name}
			</span>
		</EdgeLabelRenderer>
	);
}
