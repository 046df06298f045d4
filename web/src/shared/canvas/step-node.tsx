import { memo, type ReactNode } from "react";
import { cx } from "@/ui/class";
import { RetryIcon, WarningIcon } from "@/ui/icons";
import { type Outcome, StatusIcon, statuses } from "@/ui/status";
import { IconTile } from "../mark";
import { actionIcon, PinIcon, ShieldIcon } from "./icons";
import { box } from "./look";
import { shortCondition } from "./short-condition";

export interface StepNodeProps {
	name: string;
	uses: string;
	/** The condition, on the top border. */
	condition?: string;
	/** Its status in a run. */
	status?: Outcome;
	/** Shown next to the status, such as "1.2 s". */
	note?: ReactNode;
	/** The number of problems; shown if there is no status. */
	problems?: number;
	/** The maximum number of attempts. */
	attempts?: number;
	continues?: boolean;
	/** It is left out of runs. */
	disabled?: boolean;
	pinned?: boolean;
	/** Why the step cannot succeed for now. */
	warning?: string;
	selected?: boolean;
	faint?: boolean;
	/** Handles and other overlays. */
	children?: ReactNode;
}

/** StepNode renders a step, in the builder and in a run. It fills its container. */
export const StepNode = memo(function StepNode(props: StepNodeProps) {
	const { name, uses, condition, status, selected, disabled, children } = props;
	const faint = props.faint || disabled;
	return (
		<div
			className={cx(box({ status, selected, faint }), "flex items-center gap-3 pr-3 pl-4", disabled && "border-dashed")}
		>
			{status === "failed" && <span className="absolute inset-y-0 left-0 w-1 rounded-l-6 bg-failed" />}
			{condition && <Condition text={condition} />}
			<IconTile
				icon={actionIcon(uses)}
				className={status ? cx(statuses[status].soft, statuses[status].text) : "bg-sunken text-muted"}
			/>
			<span className="min-w-0 flex-1">
				<span className={cx("block truncate font-semibold", disabled && "line-through")} title={name}>
					{name}
				</span>
				<span className="flex min-w-0 items-center gap-1.5 text-12 text-muted">
					<span className="truncate" title={uses}>
						{uses}
					</span>
					<NodeBadges {...props} />
				</span>
			</span>
			<NodeStatus {...props} />
			{children}
		</div>
	);
});

/** Condition is the chip on the top border of a node; on a frame it is above the border, or it would cover the title. */
export function Condition({ text, raised = false }: { text: string; raised?: boolean }) {
	return (
		<span
			title={`Only if ${text}`}
			className={cx(
				"condition absolute left-1/2 max-w-[232px] -translate-x-1/2 truncate rounded-full border bg-surface px-2 text-12 leading-[18px] text-muted",
				raised ? "bottom-full" : "-top-2.5",
			)}
		>
			if <span className="font-mono">{shortCondition(text)}</span>
		</span>
	);
}

/** NodeBadges shows retries, error handling, pinned data and a warning. */
export function NodeBadges({
	attempts = 1,
	continues,
	disabled,
	pinned,
	warning,
}: Pick<StepNodeProps, "attempts" | "continues" | "disabled" | "pinned" | "warning">) {
	return (
		<>
			{disabled && <span className="shrink-0">Disabled</span>}
			{warning && (
				<span role="img" aria-label={warning} title={warning} className="text-waiting">
					<WarningIcon size={12} />
				</span>
			)}
			{attempts > 1 && (
				<span title={`Up to ${attempts} attempts`} className="inline-flex items-center gap-0.5 tabular">
					<RetryIcon size={12} />
					<span className="sr-only">Maximum attempts:</span>
					{attempts}
				</span>
			)}
			{continues && (
				<span role="img" aria-label="A failure does not stop the run" title="A failure does not stop the run">
					<ShieldIcon size={12} />
				</span>
			)}
			{pinned && (
				<span role="img" aria-label="Has pinned data" title="Has pinned data" className="text-accent">
					<PinIcon size={12} />
				</span>
			)}
		</>
	);
}

/** NodeStatus shows the status and duration, or the number of problems. */
export function NodeStatus({ status, note, problems = 0 }: Pick<StepNodeProps, "status" | "note" | "problems">) {
	if (status) {
		return (
			<span className="flex shrink-0 flex-col items-end gap-0.5">
				<StatusIcon status={status} />
				{note && <span className="text-12 whitespace-nowrap text-muted tabular">{note}</span>}
			</span>
		);
	}
	if (problems === 0) return null;
	return (
		<span
			role="img"
			aria-label={problems === 1 ? "1 problem" : `${problems} problems`}
			className="flex h-5 shrink-0 items-center gap-1 rounded-full bg-failed-soft px-1.5 text-12 font-medium text-failed tabular"
		>
			<WarningIcon size={12} />
			{problems}
		</span>
	);
}
