import type { Schema } from "@/api/client";
import type { LiveEvent } from "@/live/parse";
import { parsePath } from "./path";

export type Head = Schema["RunHead"];
export type StepHead = Schema["RunStepHead"];

/** The started steps of one round, by their id in the definition. */
export interface Round {
	readonly index: number;
	readonly steps: Map<string, StepHead>;
}

/**
 * RunRecord accumulates the events of a run's stream. It is mutable because a run can have
 * tens of thousands of steps; `version` changes with each update, and listeners are
 * notified at most a few times a second.
 */
export class RunRecord {
	head: Head | undefined;
	readonly steps = new Map<string, StepHead>();
	/** By the path of the block. */
	readonly rounds = new Map<string, Map<number, Round>>();
	/** The paths of the steps that have failed. */
	readonly failed = new Set<string>();
	/** The paths of the approvals that are decided. */
	readonly decided = new Set<string>();
	/** The number of announced log lines, by step. */
	readonly logs = new Map<string, number>();
	deleted = false;
	version = 0;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private readonly listeners = new Set<() => void>();

	readonly subscribe = (listener: () => void): (() => void) => {
		this.listeners.add(listener);
		return () => this.listeners.delete(listener);
	};

	readonly snapshot = (): number => this.version;

	apply(event: LiveEvent): void {
		if (event.type === "run") this.head = event.data as Head;
		else if (event.type === "step") this.put(event.data as StepHead);
		else if (event.type === "log") this.count(event.data as Schema["LogLine"]);
		else if (event.type === "end") this.deleted = event.data?.reason === "deleted";
		else return;
		this.timer ??= setTimeout(this.tell, this.steps.size > 2_000 ? 250 : 50);
	}

	stop(): void {
		clearTimeout(this.timer);
		this.timer = undefined;
	}

	private put(step: StepHead): void {
		this.steps.set(step.step_id, step);
		if (step.status === "failed") this.failed.add(step.step_id);
		if (step.type === "flow.approval" && step.status === "succeeded") this.decided.add(step.step_id);
		const { block, round, id } = parsePath(step.step_id);
		if (block === null || round === null) return;
		const rounds = this.rounds.get(block) ?? new Map<number, Round>();
		this.rounds.set(block, rounds);
		const own = rounds.get(round) ?? { index: round, steps: new Map<string, StepHead>() };
		rounds.set(round, own);
		own.steps.set(id, step);
	}

	private count(line: Schema["LogLine"]): void {
		this.logs.set(line.step_id, (this.logs.get(line.step_id) ?? 0) + 1);
	}

	private readonly tell = () => {
		this.timer = undefined;
		this.version += 1;
		for (const listener of this.listeners) listener();
	};
}
