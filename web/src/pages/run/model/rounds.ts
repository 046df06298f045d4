import type { Step } from "@/shared/workflow/model/types";
import type { Status } from "@/ui/status";
import { ancestors, roundPath } from "./path";
import type { Round, RunRecord, StepHead } from "./record";

export interface RoundView {
	readonly path: string;
	readonly index: number;
	readonly status: Status;
	/** A step of it failed, and it went on. */
	readonly handled: boolean;
	readonly started: number;
	/** Undefined while it is running. */
	readonly finished: number | undefined;
}

export interface Rounds {
	/** Ordered by urgency: failed, running, waiting, cancelled, succeeded, skipped; each with handled failures first. */
	readonly list: readonly RoundView[];
	/** The position of a round in the list, by its path. */
	readonly place: ReadonlyMap<string, number>;
	readonly counts: Readonly<Record<Status, number>>;
}

const order: readonly Status[] = ["failed", "running", "waiting", "cancelled", "succeeded", "skipped"];

/** Caches the rounds per record version, because several views need them. */
const roundsCache = new WeakMap<RunRecord, { version: number; rounds: Map<string, Rounds> }>();

/** roundsOf returns the started rounds of a block. */
export function roundsOf(record: RunRecord, path: string, block: Step): Rounds {
	let cache = roundsCache.get(record);
	if (cache?.version !== record.version) {
		cache = { version: record.version, rounds: new Map() };
		roundsCache.set(record, cache);
	}
	const rounds = cache.rounds.get(path) ?? computeRounds(record, path, block);
	cache.rounds.set(path, rounds);
	return rounds;
}

function computeRounds(record: RunRecord, path: string, block: Step): Rounds {
	const body = block.steps ?? [];
	const forgiven = new Set(body.filter((step) => step.on_error === "continue").map((step) => step.id));
	const open = record.steps.get(path)?.finished_at == null;
	const byStatus = new Map<Status, RoundView[]>(order.map((status) => [status, []]));
	const begun = [...(record.rounds.get(path)?.values() ?? [])].sort((a, b) => a.index - b.index);
	for (const round of begun) {
		const view = viewOf(path, round, forgiven, open && round.steps.size < body.length);
		byStatus.get(view.status)?.push(view);
	}
	const list = order.flatMap((status) => handledFirst(byStatus.get(status) ?? []));
	return {
		list,
		place: new Map(list.map((round, at) => [round.path, at])),
		counts: Object.fromEntries(order.map((status) => [status, byStatus.get(status)?.length ?? 0])) as Rounds["counts"],
	};
}

function handledFirst(rounds: readonly RoundView[]): RoundView[] {
	return [...rounds.filter((round) => round.handled), ...rounds.filter((round) => !round.handled)];
}

function viewOf(block: string, round: Round, forgiven: ReadonlySet<string>, more: boolean): RoundView {
	const steps = [...round.steps.values()];
	const status = statusOf(steps, (id) => forgiven.has(id), round, more);
	const open = status === "running" || status === "waiting";
	let started = Number.POSITIVE_INFINITY;
	let finished = 0;
	for (const step of steps) {
		started = Math.min(started, Date.parse(step.started_at));
		finished = Math.max(finished, Date.parse(step.finished_at ?? step.started_at));
	}
	return {
		path: roundPath(block, round.index),
		index: round.index,
		status,
		handled: [...round.steps].some(([id, step]) => step.status === "failed" && forgiven.has(id)),
		started,
		finished: open ? undefined : finished,
	};
}

function statusOf(steps: readonly StepHead[], forgiven: (id: string) => boolean, round: Round, more: boolean): Status {
	const has = new Set<Status>();
	for (const [id, step] of round.steps) has.add(step.status === "failed" && forgiven(id) ? "succeeded" : step.status);
	for (const status of ["failed", "running", "waiting", "cancelled"] as const) if (has.has(status)) return status;
	if (more) return "running";
	return steps.every((step) => step.status === "skipped") ? "skipped" : "succeeded";
}

/** tally summarizes a loop: "38/40 · 2 failed". The total of a repeat is not known in advance. */
export function tally({ list, counts }: Rounds, total: number | undefined): string {
	const good = counts.succeeded + counts.skipped;
	const words = total === undefined ? [list.length === 1 ? "1 round" : `${list.length} rounds`] : [`${good}/${total}`];
	if (counts.failed > 0) words.push(`${counts.failed} failed`);
	return words.join(" · ");
}

export function roundAt(rounds: Rounds, path: string): RoundView | undefined {
	return rounds.list[rounds.place.get(path) ?? -1];
}

/** roundPosition returns the position of the round that contains a path, or undefined. */
export function roundPosition(rounds: Rounds, path: string): number | undefined {
	for (const outer of [...ancestors(path), path]) {
		const at = rounds.place.get(outer);
		if (at !== undefined) return at;
	}
	return undefined;
}

/** roundNumbered returns the path of the same step in the round with a number, which counts from 1; undefined if it has not started. */
export function roundNumbered(rounds: Rounds, block: string, path: string, number: number): string | undefined {
	const wanted = roundPath(block, number - 1);
	if (!rounds.place.has(wanted)) return undefined;
	const here = rounds.list[roundPosition(rounds, path) ?? -1];
	return here ? wanted + path.slice(here.path.length) : wanted;
}

/** adjacentRound returns the path of the same step in the next or previous round, in display order. */
export function adjacentRound(rounds: Rounds, path: string, way: 1 | -1): string | undefined {
	const at = roundPosition(rounds, path);
	if (at === undefined) return rounds.list[way > 0 ? 0 : rounds.list.length - 1]?.path;
	const here = rounds.list[at] as RoundView;
	const next = rounds.list[at + way];
	return next && next.path + path.slice(here.path.length);
}
