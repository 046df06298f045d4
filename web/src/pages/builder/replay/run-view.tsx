import { useMay } from "@/api/session";
import { useDocument, useEditor, useSelected } from "@/pages/builder/state";
import { executionOutcome } from "@/shared/run/outcome";
import { find, title } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { PlayIcon } from "@/ui/icons";
import { DefinitionError } from "../data/definition-error";
import { PayloadEditor, useNextSample } from "../data/payload";
import { ResultView } from "../data/result";
import { RunSelect } from "../data/run-select";
import { useDrawn, useFollowedRun } from "./follower";
import { useReplay } from "./replay";
import { Rounds } from "./rounds";
import { RunStrip } from "./run-strip";
import { useReplayState } from "./store";
import type { DrawnStep } from "./stream-state";

/** RunView starts draft runs, and shows what the selected step did in the current run. */
export function RunView() {
	const { runWith, running } = useReplay();
	const [{ startError, asking }] = useReplayState();
	const sample = useNextSample();
	const mayRun = useMay("execute");
	const mayWrite = useMay("write");
	return (
		<div className="h-full min-h-0 max-md:overflow-y-auto md:grid md:grid-cols-[20rem_1fr]">
			<div className="flex min-h-0 flex-col gap-3 p-4 max-md:border-b md:overflow-y-auto md:border-r">
				{asking && (
					<p className="text-12">Nothing has started this workflow yet. Choose or enter what it starts with.</p>
				)}
				<Button
					kind="primary"
					icon={PlayIcon}
					busy={running}
					disabled={!mayRun || !mayWrite}
					onClick={() => runWith(sample)}
				>
					Run the draft
				</Button>
				{startError ? <DefinitionError error={startError} /> : null}
				<PayloadEditor />
			</div>
			<DrawnRun />
		</div>
	);
}

function DrawnRun() {
	const [{ run }] = useReplayState();
	const followed = useFollowedRun();
	if (run === null || !followed) {
		return (
			<div className="p-4 text-muted">
				<p>
					The draft runs as it is on the canvas, saved or not. Steps have real effects; pinned steps are not executed.
				</p>
				<p>The run appears on the canvas as it happens. Click a step to see its input and output.</p>
				<div className="mt-3 flex items-center gap-2">
					<RunSelect label="Run to show on the canvas" hidden />
				</div>
			</div>
		);
	}
	return (
		<div className="flex min-h-0 min-w-0 flex-col">
			<RunStrip run={run} followed={followed} />
			{followed.head?.error && (
				<p className="mx-4 mt-2 rounded-6 bg-failed-soft px-3 py-2 break-words text-failed">
					{followed.head.error.message}
				</p>
			)}
			<div className="min-h-0 flex-1">
				<SelectedStep />
			</div>
		</div>
	);
}

/** SelectedStep shows what the selected step did in the current run. */
function SelectedStep() {
	const selected = useSelected();
	const drawn = useDrawn();
	const editor = useEditor();
	const doc = useDocument();
	const followed = useFollowedRun();
	const [{ run }] = useReplayState();
	if (selected.kind !== "step") return <p className="p-4 text-muted">Select a step to see what it did.</p>;
	const { step } = selected;
	const ran = drawn?.nodes.get(step.id) as DrawnStep | undefined;
	const loops = [...(find(doc.steps, step.id)?.path ?? []), step.id].filter((id) => drawn?.loops.has(id));
	return (
		<div className="flex h-full min-h-0 flex-col">
			{loops.map((id, i) => {
				const loop = drawn?.loops.get(id);
				return loop && <Rounds key={loop.path} name={titleOf(id)} loop={loop} keys={i === loops.length - 1} />;
			})}
			<div className="min-h-0 flex-1">
				{ran ? (
					<ResultView
						key={`${run} ${ran.step_id}`}
						status={executionOutcome({ ...ran, type: step.uses })}
						duration={ran.duration_ms}
						since={ran.finished_at === null ? ran.started_at : null}
						input={ran.input}
						output={ran.output}
						inputFiles={ran.input_files}
						outputFiles={ran.output_files}
						error={ran.error}
						reason={ran.reason}
						aside={
							<>
								<span className="truncate font-medium">{title(step)}</span>
								{ran.attempt > 1 && <Badge>attempt {ran.attempt}</Badge>}
								{ran.pinned && <Badge tone="accent">pinned output</Badge>}
							</>
						}
					/>
				) : (
					<p className="p-4 text-muted">
						{followed?.ended ? `${title(step)} was not reached in this run.` : `${title(step)} has not started yet.`}
					</p>
				)}
			</div>
		</div>
	);

	function titleOf(id: string): string {
		const found = find(editor.doc.steps, id)?.step;
		return found ? title(found) : id;
	}
}
