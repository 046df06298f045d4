import { isBlock, type Step } from "@/builder/model/types";
import { roundPath } from "./path";
import type { RunRecord } from "./record";
import { placeIn, roundsOf } from "./rounds";

/**
 * chosen tells for each step of the definition which of its executions a drawing shows:
 * inside loops that of the round looked at, or else of the round that needs attention most.
 */
export function chosen(record: RunRecord, steps: readonly Step[], selected: string): Map<string, string> {
	const out = new Map<string, string>();
	const visit = (list: readonly Step[], prefix: string) => {
		for (const step of list) {
			const path = prefix + step.id;
			out.set(step.id, path);
			if (!isBlock(step)) continue;
			const rounds = roundsOf(record, path, step);
			const round = rounds.list[placeIn(rounds, selected) ?? 0];
			visit(step.steps ?? [], `${round?.path ?? roundPath(path, 0)}.`);
		}
	};
	visit(steps, "");
	return out;
}
