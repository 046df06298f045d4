import type { Outcome, Status } from "@/ui/status";

interface Execution {
	/** The action. */
	readonly type: string | undefined;
	readonly status: Status;
	readonly output?: unknown;
}

/** executionOutcome returns what became of a step. An approval that was not granted has succeeded, but as a rejection. */
export function executionOutcome({ type, status, output }: Execution): Outcome {
	const refused = typeof output === "object" && output !== null && "approved" in output && output.approved === false;
	return type === "flow.approval" && status === "succeeded" && refused ? "rejected" : status;
}
