import type { Head } from "./record";

export interface RetryChoice {
	readonly version: "pinned" | "current";
	readonly label: string;
	/** The message shown when the new run has started. */
	readonly done: string;
}

type Retried = Pick<Head, "status" | "draft" | "workflow_version">;

/**
 * retryChoices returns the ways to retry a run, the most useful first, or none if the run
 * cannot be retried. `current` is the current version of the workflow, if known.
 */
export function retryChoices(head: Retried, current: number | undefined): RetryChoice[] {
	if (head.status !== "failed" && head.status !== "cancelled") return [];
	const newer = current !== undefined && (head.draft || current !== head.workflow_version);
	if (!newer) {
		const label = head.status === "failed" ? "Retry from the failed step" : "Retry";
		return [{ version: "pinned", label, done: "Retrying. Steps that succeeded keep their results." }];
	}
	const ran = head.draft ? "the draft" : `v${head.workflow_version}`;
	return [
		{
			version: "current",
			label: `Retry with v${current} (current)`,
			done: `Retrying with v${current}. Steps that succeeded and have not changed keep their results.`,
		},
		{
			version: "pinned",
			label: `Retry with ${ran} (original)`,
			done: `Retrying with ${ran}. Steps that succeeded keep their results.`,
		},
	];
}
