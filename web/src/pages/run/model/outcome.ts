import type { Outcome } from "@/ui/status";
import type { StepHead } from "./record";

/** What a run knows about its steps besides their status. */
export interface Outcomes {
	/** The paths of the approvals that were not granted. */
	readonly rejected: ReadonlySet<string>;
}

/** outcomeOf returns what became of a step: its status, or that the decision was a rejection. */
export function outcomeOf(head: StepHead, { rejected }: Outcomes): Outcome {
	return head.status === "succeeded" && rejected.has(head.step_id) ? "rejected" : head.status;
}
