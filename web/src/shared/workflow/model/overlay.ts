import type { Json } from "./types";

// Maps a run onto its graph: the state of each node and the rounds of each loop.

export type Status = "running" | "waiting" | "succeeded" | "failed" | "skipped" | "cancelled";

/** A step of a run, as the API returns it; its id is a path such as lines[3].reserve. */
export interface RunStep {
	readonly step_id: string;
	readonly status: Status;
	readonly attempt: number;
	readonly started_at: string;
	readonly finished_at: string | null;
	readonly duration_ms: number;
	readonly error: { readonly code: string; readonly message: string } | null;
	readonly reason: string | null;
	readonly pinned?: boolean;
	readonly output?: Json;
}

/** The rounds of a loop, as counted by the API. */
export interface RoundCount {
	readonly total: number | null;
	readonly counts: Readonly<Partial<Record<Status, number>>>;
}

export interface Round {
	readonly index: number;
	readonly status: Status;
}

export interface LoopState {
	/** The path of the loop in the run, such as lines or lines[3].parts. */
	readonly path: string;
	/** Failed ones first, then in order. */
	readonly rounds: readonly Round[];
	/** The round whose steps are shown; null if there is none yet. */
	readonly shown: number | null;
	/** "38/40 · 2 failed" */
	readonly label: string;
}

export interface Overlay {
	/** The step of the run shown at each node, by node id. */
	readonly nodes: ReadonlyMap<string, RunStep>;
	readonly loops: ReadonlyMap<string, LoopState>;
}

export interface Segment {
	readonly id: string;
	readonly index?: number;
}

/** Parses a path in a run: lines[3].reserve is the step reserve in round 3 of lines. */
export function readPath(path: string): Segment[] {
	return path.split(".").map((part) => {
		const round = /^(.*)\[(\d+)\]$/.exec(part);
		return round ? { id: round[1] as string, index: Number(round[2]) } : { id: part };
	});
}

const urgency: readonly Status[] = ["failed", "running", "waiting", "cancelled", "succeeded", "skipped"];

/**
 * The state of each node. Inside a loop it is that of one round: the selected one, else
 * the first failed, running or waiting one, else the last.
 */
export function overlay(
	steps: readonly RunStep[],
	chosen: Readonly<Record<string, number>> = {},
	counted: Readonly<Record<string, RoundCount>> = {},
): Overlay {
	const loops = new Map<string, LoopState>();
	const nodes = new Map<string, RunStep>();
	const inRound = group(steps);
	const draw = (prefix: string): void => {
		for (const step of inRound.get(prefix) ?? []) {
			const id = readPath(step.step_id).at(-1)?.id ?? step.step_id;
			nodes.set(id, step);
			const rounds = roundsOf(step.step_id, inRound);
			const count = counted[step.step_id];
			if (rounds.length === 0 && !count) continue;
			const shown = choose(rounds, chosen[step.step_id]);
			loops.set(id, { path: step.step_id, rounds, shown, label: labelOf(rounds, count) });
			if (shown !== null) draw(`${step.step_id}[${shown}].`);
		}
	};
	draw("");
	return { nodes, loops };
}

/** Groups steps by the prefix of their id: "" or "lines[3].". */
function group(steps: readonly RunStep[]): Map<string, RunStep[]> {
	const out = new Map<string, RunStep[]>();
	for (const step of steps) {
		const prefix = step.step_id.slice(0, step.step_id.lastIndexOf(".") + 1);
		const list = out.get(prefix);
		if (list) list.push(step);
		else out.set(prefix, [step]);
	}
	return out;
}

function roundsOf(loop: string, inRound: ReadonlyMap<string, readonly RunStep[]>): Round[] {
	const rounds: Round[] = [];
	for (const [prefix, steps] of inRound) {
		if (!prefix.startsWith(`${loop}[`)) continue;
		const index = /^(\d+)\]\.$/.exec(prefix.slice(loop.length + 1))?.[1];
		if (index !== undefined) rounds.push({ index: Number(index), status: statusOf(steps) });
	}
	const first = (round: Round) => (round.status === "failed" ? 0 : 1);
	return rounds.sort((a, b) => first(a) - first(b) || a.index - b.index);
}

/** The status of a round: the most urgent one of its steps; skipped only if all are. */
function statusOf(steps: readonly RunStep[]): Status {
	return urgency.find((status) => steps.some((step) => step.status === status)) ?? "skipped";
}

function choose(rounds: readonly Round[], chosen: number | undefined): number | null {
	if (chosen !== undefined && rounds.some((round) => round.index === chosen)) return chosen;
	for (const status of ["failed", "running", "waiting"] as const) {
		const found = rounds.find((round) => round.status === status);
		if (found) return found.index;
	}
	return rounds.length === 0 ? null : Math.max(...rounds.map((round) => round.index));
}

function labelOf(rounds: readonly Round[], count: RoundCount | undefined): string {
	const of = (status: Status) =>
		count?.counts[status] ?? (count ? 0 : rounds.filter((round) => round.status === status).length);
	const done = of("succeeded") + of("skipped");
	const all = urgency.reduce((sum, status) => sum + of(status), 0);
	const parts = [
		count && count.total === null ? `${all} ${all === 1 ? "round" : "rounds"}` : `${done}/${count?.total ?? all}`,
	];
	if (of("failed") > 0) parts.push(`${of("failed")} failed`);
	return parts.join(" · ");
}

/** The round after the shown one, in list order, wrapping around. */
export function nextRound(loop: LoopState, by: 1 | -1): number | null {
	const at = loop.rounds.findIndex((round) => round.index === loop.shown);
	const next = loop.rounds[(at + by + loop.rounds.length) % Math.max(1, loop.rounds.length)];
	return next?.index ?? null;
}
