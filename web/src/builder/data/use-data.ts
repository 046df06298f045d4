import { useMemo } from "react";
import { useDocument, useEditor } from "@/builder/state";
import { useReplayState } from "../replay/store";
import { type Gathered, gather, type RunData } from "./gather";
import { outputOf, useActions, useNames, useRecentRuns, useRun } from "./queries";

/** useDataRun is the run whose data is used: the one that is drawn, else the latest that has ended. */
export function useDataRun(): string | null {
	const [{ run }] = useReplayState();
	const recent = useRecentRuns(useEditor().id);
	return run ?? recent?.find((one) => one.finished_at !== null)?.id ?? null;
}

/** useData is what is known of the values that expressions of the open document name. */
export function useData(): Gathered {
	const doc = useDocument();
	const [{ chosen }] = useReplayState();
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
				...(vars && { vars }),
				...(secrets && { secrets }),
			}),
		[doc, run, actions, chosen, vars, secrets],
	);
}
