import { isBlock, type Step } from "@/shared/workflow/model/types";
import type { Outcome } from "@/ui/status";
import { type Outcomes, outcomeOf } from "./outcome";
import type { RunRecord, StepHead } from "./record";
import { type Rounds, type RoundView, roundsOf } from "./rounds";

export interface StepRow {
	readonly kind: "step";
	readonly path: string;
	readonly depth: number;
	readonly step: Step;
	/** Undefined until the step has started or was skipped. */
	readonly head: StepHead | undefined;
	/** Undefined if there is nothing to expand. */
	readonly open: boolean | undefined;
	/** Only for blocks. */
	readonly rounds: Rounds | undefined;
}

export interface RoundRow {
	readonly kind: "round";
	readonly path: string;
	readonly depth: number;
	readonly round: RoundView;
	readonly open: boolean;
}

export type Row = StepRow | RoundRow;

/** rowsOf flattens a run into rows: steps in definition order, with rounds below their block. */
export function rowsOf(record: RunRecord, steps: readonly Step[], open: (path: string) => boolean): Row[] {
	const out: Row[] = [];
	const visit = (list: readonly Step[], prefix: string, depth: number) => {
		for (const step of list) {
			const path = prefix + step.id;
			const block = isBlock(step);
			const rounds = block ? roundsOf(record, path, step) : undefined;
			const openable = rounds !== undefined && rounds.list.length > 0;
			const opened = openable ? open(path) : undefined;
			out.push({ kind: "step", path, depth, step, head: record.steps.get(path), open: opened, rounds });
			if (!opened || !rounds) continue;
			for (const round of rounds.list) {
				const wide = open(round.path);
				out.push({ kind: "round", path: round.path, depth: depth + 1, round, open: wide });
				if (wide) visit(step.steps ?? [], `${round.path}.`, depth + 2);
			}
		}
	};
	visit(steps, "", 0);
	return out;
}

/** rowOutcome returns what became of a step or a round; undefined if it has not started. */
export function rowOutcome(row: Row, outcomes: Outcomes): Outcome | undefined {
	if (row.kind === "round") return row.round.status;
	return row.head && outcomeOf(row.head, outcomes);
}

/** The effect of a key: go to another row, or expand or collapse one. */
export type Move = { to: string } | { open: string } | { close: string } | undefined;

export function move(rows: readonly Row[], at: number, key: string): Move {
	const go = (index: number): Move => {
		const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
		return row && { to: row.path };
	};
	if (key === "ArrowDown") return go(at + 1);
	if (key === "ArrowUp") return at < 0 ? go(0) : go(at - 1);
	if (key === "Home") return go(0);
	if (key === "End") return go(rows.length - 1);
	const row = rows[at];
	if (!row) return undefined;
	if (key === "ArrowRight") {
		if (row.open === false) return { open: row.path };
		return row.open ? go(at + 1) : undefined;
	}
	if (key !== "ArrowLeft") return undefined;
	if (row.open) return { close: row.path };
	const parent = rows.slice(0, at).findLast((other) => other.depth < row.depth);
	return parent && { to: parent.path };
}
