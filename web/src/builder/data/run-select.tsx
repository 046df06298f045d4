import { useEditor } from "@/builder/state";
import { Field, NativeSelect } from "@/ui/field";
import { timeOfDay } from "@/ui/time";
import { useReplayState } from "../replay/store";
import { useRecentRuns } from "./queries";
import { useDataRun } from "./use-data";

/** RunSelect chooses the run whose data is used, and draws it. */
export function RunSelect() {
	const editor = useEditor();
	const [, replay] = useReplayState();
	const runs = useRecentRuns(editor.id) ?? [];
	const chosen = useDataRun();
	if (runs.length === 0) return <p className="text-12 text-muted">There is no run yet whose data could be used.</p>;
	return (
		<Field label="Data of">
			<NativeSelect
				value={chosen ?? ""}
				onChange={(event) => replay.draw(event.target.value || null)}
				options={[
					...(chosen === null ? [{ value: "", label: "No run" }] : []),
					...runs.map((run) => ({ value: run.id, label: `${when(run.started_at)} · ${run.status}` })),
				]}
			/>
		</Field>
	);
}

function when(at: string): string {
	const date = new Date(at);
	const today = date.toDateString() === new Date().toDateString();
	const time = timeOfDay(date.getTime());
	return today ? `Today ${time}` : `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })} ${time}`;
}
