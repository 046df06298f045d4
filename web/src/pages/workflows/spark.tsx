import { Tooltip } from "@/ui/tooltip";
import { bars, type RecentRun, summary } from "./activity";

const height = 24;
const middle = height / 2;
const step = 5;

const colours: Record<RecentRun["status"], string> = {
	succeeded: "var(--succeeded)",
	failed: "var(--failed)",
	cancelled: "var(--cancelled)",
	running: "var(--running)",
};

/** Sparkline draws the last runs: successful ones point up, failed ones down. */
export function Sparkline({ recent }: { recent: readonly RecentRun[] }) {
	const text = summary(recent);
	return (
		<Tooltip text={text}>
			<svg
				role="img"
				aria-label={text}
				width={20 * step}
				height={height}
				viewBox={`0 0 ${20 * step} ${height}`}
				className="row-control shrink-0"
			>
				<path d={`M0 ${middle}H${20 * step}`} stroke="var(--border)" />
				{bars(recent).map(({ id, status, size }, at) => {
					const long = 3 + size * (middle - 3);
					const x = (20 - recent.length + at) * step + 1;
					if (status === "cancelled" || status === "running")
						return <circle key={id} cx={x + 1.5} cy={middle} r={1.75} fill={colours[status]} />;
					return (
						<rect
							key={id}
							x={x}
							y={status === "failed" ? middle : middle - long}
							width={3}
							height={long}
							rx={1}
							fill={colours[status]}
						/>
					);
				})}
			</svg>
		</Tooltip>
	);
}
