import type { Schema } from "@/api/client";
import type { RunStep } from "@/builder/model";

// A run as it is told: what was read, and what the stream has said since.

export type RunHead = Schema["RunHead"];
export type StepHead = Schema["RunStepHead"];

export interface Heard {
	readonly head: RunHead | null;
	readonly steps: ReadonlyMap<string, StepHead>;
	readonly ended: boolean;
}

export const silence: Heard = { head: null, steps: new Map(), ended: false };

/** What is known after an event of the stream: the last word on each step counts. */
export function hear(heard: Heard, event: { type: string; data: unknown }): Heard {
	switch (event.type) {
		case "run":
			return { ...heard, head: event.data as RunHead };
		case "step": {
			const step = event.data as StepHead;
			return { ...heard, steps: new Map(heard.steps).set(step.step_id, step) };
		}
		case "end":
			return { ...heard, ended: true };
		default:
			return heard;
	}
}

export type DrawnStep = RunStep & Partial<Pick<Schema["RunStep"], "input" | "attempts" | "name" | "type">>;

export interface Followed {
	readonly head: RunHead | Schema["Run"] | null;
	readonly steps: readonly DrawnStep[];
	readonly ended: boolean;
}

/** Joins both: a step that was told is newer than one that was read, unless the run was read after its end. */
export function follow(read: Schema["Run"] | undefined, heard: Heard): Followed {
	if (read && read.finished_at !== null) return { head: read, steps: read.steps as DrawnStep[], ended: true };
	const steps = new Map<string, DrawnStep>();
	for (const step of read?.steps ?? []) steps.set(step.step_id, step as DrawnStep);
	for (const [id, step] of heard.steps) steps.set(id, { ...steps.get(id), ...(step as DrawnStep) });
	return { head: heard.head ?? read ?? null, steps: [...steps.values()], ended: heard.ended };
}
