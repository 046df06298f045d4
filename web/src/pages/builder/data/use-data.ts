import { useMemo } from "react";
import { useDocument, useEditor } from "@/pages/builder/state";
import { useReplayState } from "../replay/store";
import { type Gathered, gather, type RunData } from "./gather";
import { outputOf, useActions, useNames, useRecentRuns, useRun } from "./queries";

/** useDataRun returns the run whose data is used: the one on the canvas, or else the latest finished one. */
export function useDataRun(): string | null {
	const [{ run }] = useReplayState();
	const recent = useRecentRuns(useEditor().id);
	return run ?? recent?.find((one) => one.finished_at !== null)?.id ?? null;
}

/** useData returns the values known for the expressions of the open document. */
export function useData(): Gathered {
	const doc = useDocument();
	const [{ rounds: chosen, sample }] = useReplayState();
	const actions = useActions();
	const { vars, secrets } = useNames();
	const run = useRun(useDataRun()).data;
	return useMemo(
		() =>
			gather({
				doc,
				run: (run as RunData | undefined) ?? null,
				outputOf: (uses) => outputOf(actions, uses),
				chosen,
				...(sample && { sample }),
				...(vars && { vars }),
				...(secrets && { secrets }),
			}),
		[doc, run, sample, actions, chosen, vars, secrets],
	);
}
