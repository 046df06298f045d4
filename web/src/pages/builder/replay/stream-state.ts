import type { Schema } from "@/api/client";
import type { RunStep } from "@/shared/workflow/model";

// Combines a run that was fetched with the events since.

export type RunHead = Schema["RunHead"];
export type StepHead = Schema["RunStepHead"];

export interface StreamState {
	readonly head: RunHead | null;
	readonly steps: ReadonlyMap<string, StepHead>;
	readonly ended: boolean;
}

export const emptyStream: StreamState = { head: null, steps: new Map(), ended: false };

/** Applies an event of the stream; the latest event of each step wins. */
export function applyEvent(stream: StreamState, event: { type: string; data: unknown }): StreamState {
	switch (event.type) {
		case "run":
			return { ...stream, head: event.data as RunHead };
		case "step": {
			const step = event.data as StepHead;
			return { ...stream, steps: new Map(stream.steps).set(step.step_id, step) };
		}
		case "end":
			return { ...stream, ended: true };
		default:
			return stream;
	}
}

export type DrawnStep = RunStep &
	Partial<Pick<Schema["RunStep"], "input" | "input_files" | "output_files" | "attempts" | "name" | "type">>;

/** The id of the step with a path such as lines[3].reserve. */
export function stepIdOf(path: string): string {
	return (path.split(".").at(-1) ?? path).replace(/\[\d+\]$/, "");
}

export interface FollowedRun {
	readonly head: RunHead | Schema["Run"] | null;
	readonly steps: readonly DrawnStep[];
	readonly ended: boolean;
}

/** Merges both: a step from the stream is newer than a fetched one, unless the run was fetched after it ended. */
export function mergeRun(read: Schema["Run"] | undefined, stream: StreamState): FollowedRun {
	if (read && read.finished_at !== null) return { head: read, steps: read.steps as DrawnStep[], ended: true };
	const steps = new Map<string, DrawnStep>();
	for (const step of read?.steps ?? []) steps.set(step.step_id, step as DrawnStep);
	for (const [id, step] of stream.steps) steps.set(id, { ...steps.get(id), ...(step as DrawnStep) });
	return { head: stream.head ?? read ?? null, steps: [...steps.values()], ended: stream.ended };
}
