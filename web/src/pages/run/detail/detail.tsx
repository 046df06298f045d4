import { find, type Step, title } from "@/shared/workflow/model";
import { parsePath, parseRound } from "../model/path";
import type { RunRecord } from "../model/record";
import type { DetailProps } from "../props";
import { RoundDetail } from "./round";
import { RunDetail } from "./run";
import { StepDetail } from "./step-detail";

/** Detail shows what is selected: a step, a round of a loop, or the whole run. */
export function Detail(props: DetailProps) {
	const { path } = props.selection;
	if (path === "") return <RunDetail {...props} />;
	const round = parseRound(path);
	if (round) return <RoundDetail {...props} block={round.block} index={round.index} />;
	return <StepDetail key={path} {...props} />;
}

export function useDetailTitle(record: RunRecord, steps: readonly Step[], path: string): string {
	if (path === "") return "Run and payload";
	const round = parseRound(path);
	if (round) {
		const block = find(steps, parsePath(round.block).id)?.step;
		return `${block ? title(block) : round.block} · round ${round.index + 1}`;
	}
	const step = find(steps, parsePath(path).id)?.step;
	return step ? title(step) : (record.steps.get(path)?.name ?? path);
}
