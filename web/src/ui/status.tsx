import type { Schema } from "@/api/client";
import { cx } from "./class";
import { type Icon, svgIcon } from "./icons";

/** The statuses of steps, which include those of runs. */
export type Status = Schema["StepStatus"];

/** What became of a step, in words: a decision that succeeded can be a rejection. */
export type Outcome = Status | "rejected";

/** Each outcome has a shape as well as a color. */
export const statuses: Record<Outcome, { name: string; icon: Icon; text: string; soft: string }> = {
	running: {
		name: "Running",
		icon: svgIcon(<path d="M8 2a6 6 0 1 1-5.2 3" strokeWidth={2} />),
		text: "text-running",
		soft: "bg-running-soft",
	},
	waiting: {
		name: "Waiting",
		icon: svgIcon(
			<>
				<circle cx="8" cy="8" r="6" strokeDasharray="2.4 2.3" />
				<path d="M8 4.8V8l2.2 1.4" />
			</>,
		),
		text: "text-waiting",
		soft: "bg-waiting-soft",
	},
	succeeded: {
		name: "Succeeded",
		icon: svgIcon(
			<>
				<circle cx="8" cy="8" r="6" />
				<path d="m5.4 8.2 1.8 1.8 3.4-3.8" />
			</>,
		),
		text: "text-succeeded",
		soft: "bg-succeeded-soft",
	},
	failed: {
		name: "Failed",
		icon: svgIcon(
			<>
				<circle cx="8" cy="8" r="6" />
				<path d="m5.9 5.9 4.2 4.2m0-4.2-4.2 4.2" />
			</>,
		),
		text: "text-failed",
		soft: "bg-failed-soft",
	},
	skipped: {
		name: "Skipped",
		icon: svgIcon(
			<>
				<path d="M2.5 9.5C4 4.5 10 4 12.5 8.3" strokeDasharray="1.2 2.2" strokeWidth={1.6} />
				<path d="m13.2 4.8-.5 3.7-3.6-.6" />
			</>,
		),
		text: "text-skipped",
		soft: "bg-skipped-soft",
	},
	cancelled: {
		name: "Cancelled",
		icon: svgIcon(
			<>
				<circle cx="8" cy="8" r="6" />
				<path d="m3.8 12.2 8.4-8.4" />
			</>,
		),
		text: "text-cancelled",
		soft: "bg-cancelled-soft",
	},
	rejected: {
		name: "Rejected",
		icon: svgIcon(
			<>
				<circle cx="8" cy="8" r="6" />
				<path d="M5.2 8h5.6" />
			</>,
		),
		text: "text-failed",
		soft: "bg-failed-soft",
	},
};

/** statusColor returns the color of an outcome as a custom property, such as var(--failed). */
export function statusColor(outcome: Outcome): string {
	return `var(--${outcome === "rejected" ? "failed" : outcome})`;
}

/** StatusIcon conveys the status by color, shape and name. */
export function StatusIcon({ status, size = 16, label }: { status: Outcome; size?: number; label?: string }) {
	const { icon: Shape, name, text } = statuses[status];
	return (
		<span role="img" aria-label={label ?? name} className={cx("inline-flex", text)}>
			<Shape size={size} className={status === "running" ? "animate-turn" : undefined} />
		</span>
	);
}

export function StatusBadge({ status, children }: { status: Outcome; children?: string }) {
	const { icon: Shape, name, text, soft } = statuses[status];
	return (
		<span
			className={cx(
				"inline-flex h-6 items-center gap-1.5 rounded-6 px-2 text-12 font-medium whitespace-nowrap",
				text,
				soft,
			)}
		>
			<Shape size={14} className={status === "running" ? "animate-turn" : undefined} />
			{children ?? name}
		</span>
	);
}
