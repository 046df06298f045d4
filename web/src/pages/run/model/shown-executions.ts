import { isBlock, type Step } from "@/shared/workflow/model/types";
import { roundPath } from "./path";
import type { RunRecord } from "./record";
import { roundPosition, roundsOf } from "./rounds";

/**
 * shownExecutions maps each step of the definition to the execution that the graph shows.
 * Inside loops that is the selected round, or else the round that most needs attention.
 */
export function shownExecutions(record: RunRecord, steps: readonly Step[], selected: string): Map<string, string> {
	const out = new Map<string, string>();
	const visit = (list: readonly Step[], prefix: string) => {
		for (const step of list) {
			const path = prefix + step.id;
			out.set(step.id, path);
			if (!isBlock(step)) continue;
			const rounds = roundsOf(record, path, step);
			const round = rounds.list[roundPosition(rounds, selected) ?? 0];
			visit(step.steps ?? [], `${round?.path ?? roundPath(path, 0)}.`);
		}
	};
	visit(steps, "");
	return out;
}
