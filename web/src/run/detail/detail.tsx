import { find, type Step, title } from "@/builder/model";
import { placeOf, roundOf } from "../model/path";
import type { RunRecord } from "../model/record";
import type { PanesProps } from "../panes";
import { RoundDetail } from "./round";
import { RunDetail } from "./run";
import { StepDetail } from "./step";

export interface DetailProps extends PanesProps {
	/** Without its title, which is shown elsewhere. */
	bare?: boolean;
}

/** Detail shows what is selected: a step, a round of a loop, or the run as a whole. */
export function Detail(props: DetailProps) {
	const { path } = props.selection;
	if (path === "") return <RunDetail {...props} />;
	const round = roundOf(path);
	if (round) return <RoundDetail {...props} block={round.block} index={round.index} />;
	return <StepDetail key={path} {...props} />;
}

export function useDetailTitle(record: RunRecord, steps: readonly Step[], path: string): string {
	if (path === "") return "Run and payload";
	const round = roundOf(path);
	if (round) {
		const block = find(steps, placeOf(round.block).id)?.step;
		return `${block ? title(block) : round.block} · round ${round.index + 1}`;
	}
	const step = find(steps, placeOf(path).id)?.step;
	return step ? title(step) : (record.steps.get(path)?.name ?? path);
}
