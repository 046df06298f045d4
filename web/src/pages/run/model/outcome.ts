import { allSteps } from "@/shared/workflow/model/tree";
import type { Step } from "@/shared/workflow/model/types";
import type { Outcome } from "@/ui/status";
import { ancestors, parsePath } from "./path";
import type { RunRecord, StepHead } from "./record";

/** What a run knows about its steps besides their status. */
export interface Outcomes {
	/** The paths of the approvals that were not granted. */
	readonly rejected: ReadonlySet<string>;
	/** How many failures did not stop the run: by path of the blocks and rounds they are in, and of the run, which is "". */
	readonly handled: ReadonlyMap<string, number>;
}

/** handledFailures counts the steps that failed without stopping the run, because of their on_error. */
export function handledFailures(record: RunRecord, steps: readonly Step[]): Map<string, number> {
	const forgiven = new Set(allSteps(steps).flatMap((step) => (step.on_error === "continue" ? [step.id] : [])));
	const counts = new Map<string, number>();
	for (const path of record.failed) {
		if (!forgiven.has(parsePath(path).id)) continue;
		for (const outer of ["", ...ancestors(path)]) counts.set(outer, (counts.get(outer) ?? 0) + 1);
	}
	return counts;
}

/** handledWords returns "2 failures handled". */
export function handledWords(count: number): string {
	return `${count} ${count === 1 ? "failure" : "failures"} handled`;
}

/** outcomeOf returns what became of a step: its status, or that the decision was a rejection. */
export function outcomeOf(head: StepHead, { rejected }: Outcomes): Outcome {
	return head.status === "succeeded" && rejected.has(head.step_id) ? "rejected" : head.status;
}
