import { cx } from "@/ui/class";
import type { Status } from "@/ui/status";

/** The border of a node in a run: each status has a line of its own besides its colour. */
export const outline: Record<Status, string> = {
	running: "border-2 border-solid border-running",
	waiting: "border-2 border-dashed border-waiting",
	succeeded: "border border-solid border-succeeded/60",
	failed: "border border-solid border-failed",
	skipped: "border border-dotted border-skipped",
	cancelled: "border border-solid border-cancelled/60",
};

export interface Look {
	status?: Status;
	selected?: boolean;
	/** Not part of what is being looked at, such as a step that a run has not reached. */
	faint?: boolean;
}

/** box is the outline of a node; a selected one has the accent around it, whatever its status. */
export function box({ status, selected, faint }: Look): string {
	return cx(
		"relative size-full rounded-8 bg-surface text-left",
		status ? outline[status] : "border border-solid border-border",
		status === undefined && faint && "text-muted",
		selected && "outline-2 outline-offset-1 outline-solid outline-accent",
	);
}
