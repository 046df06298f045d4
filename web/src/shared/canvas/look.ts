import { cx } from "@/ui/class";
import type { Outcome } from "@/ui/status";

/** The border of a node in a run: each status has its own line style as well as its color. */
export const outline: Record<Outcome, string> = {
	running: "border-2 border-solid border-running",
	waiting: "border-2 border-dashed border-waiting",
	succeeded: "border border-solid border-succeeded/60",
	failed: "border border-solid border-failed",
	skipped: "border border-dotted border-skipped",
	cancelled: "border border-solid border-cancelled/60",
	rejected: "border border-solid border-failed/60",
};

export interface Look {
	status?: Outcome;
	selected?: boolean;
	/** Not part of what is shown, such as a step that a run has not reached. */
	faint?: boolean;
}

/** box returns the classes of a node's outline; a selected node has an accent outline whatever its status. */
export function box({ status, selected, faint }: Look): string {
	return cx(
		"relative size-full rounded-8 bg-surface text-left",
		status ? outline[status] : "border border-solid border-border",
		status === undefined && faint && "text-muted",
		selected && "outline-2 outline-offset-1 outline-solid outline-accent",
	);
}
