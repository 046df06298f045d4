import { useEditor } from "@/pages/builder/state";
import { Field, NativeSelect } from "@/ui/field";
import { timeOfDay } from "@/ui/time";
import { useReplayState } from "../replay/store";
import { useRecentRuns } from "./queries";
import { useDataRun } from "./use-data";

export interface RunSelectProps {
	label: string;
	/** Only for screen readers; selects the run shown on the canvas instead of the run whose data is used. */
	hidden?: boolean;
}

/** RunSelect selects the run whose data is used, and shows it. */
export function RunSelect({ label, hidden = false }: RunSelectProps) {
	const editor = useEditor();
	const [{ run: drawn }, replay] = useReplayState();
	const runs = useRecentRuns(editor.id) ?? [];
	const used = useDataRun();
	const chosen = hidden ? drawn : used;
	if (runs.length === 0) return <p className="text-12 text-muted">No runs yet. Run the workflow to use its data.</p>;
	const select = (
		<NativeSelect
			aria-label={label}
			className={hidden ? "w-52" : undefined}
			value={chosen ?? ""}
			onChange={(event) => {
				replay.draw(event.target.value || null);
				// A run is used with its own data.
				replay.set({ sample: undefined });
			}}
			options={[
				...(chosen === null ? [{ value: "", label: hidden ? "Choose a run…" : "No run" }] : []),
				...runs.map((run) => ({ value: run.id, label: `${startLabel(run.started_at)} · ${run.status}` })),
			]}
		/>
	);
	return hidden ? select : <Field label={label}>{select}</Field>;
}

function startLabel(at: string): string {
	const date = new Date(at);
	const today = date.toDateString() === new Date().toDateString();
	const time = timeOfDay(date.getTime());
	return today ? `Today ${time}` : `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })} ${time}`;
}
