import { useEditor } from "@/pages/builder/state";
import { AnswerButtons } from "@/shared/run/answer";
import { CancelRun } from "@/shared/run/cancel";
import { reasonText } from "@/shared/run/words";
import { find, title } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { IconButton } from "@/ui/button";
import { CloseIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { StatusBadge } from "@/ui/status";
import { RunSelect } from "../data/run-select";
import { useReplayState } from "./store";
import { type DrawnStep, type FollowedRun, stepIdOf } from "./stream-state";

/** RunStrip identifies the run on the canvas. While it waits or is running, it can be answered and cancelled here. */
export function RunStrip({ run, followed }: { run: string; followed: FollowedRun }) {
	const [, replay] = useReplayState();
	const { head, steps, ended } = followed;
	const waiting = ended ? [] : steps.filter(({ status }) => status === "waiting");
	const waits = waiting.length > 0 && !steps.some((step) => step.status === "running" && !isBlock(step, steps));
	return (
		<>
			<div className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b px-4 py-2">
				{head && <StatusBadge status={waits ? "waiting" : head.status} />}
				{head?.draft && (
					<span className="shrink-0 whitespace-nowrap">
						<Badge>draft run</Badge>
					</span>
				)}
				<Link to="/runs/$id" params={{ id: run }} className="truncate">
					Open run
				</Link>
				<span className="ml-auto" />
				{!ended && <CancelRun run={run} small />}
				<RunSelect label="Run on the canvas" hidden />
				<IconButton small icon={CloseIcon} label="Remove the run from the canvas" onClick={() => replay.draw(null)} />
			</div>
			{waiting.map((step) => (
				<Waiting key={step.step_id} run={run} step={step} />
			))}
		</>
	);
}

/** Whether other steps of the run are inside of this one. */
function isBlock({ step_id }: DrawnStep, steps: readonly DrawnStep[]): boolean {
	return steps.some((step) => step.step_id.startsWith(`${step_id}[`));
}

function Waiting({ run, step }: { run: string; step: DrawnStep }) {
	const editor = useEditor();
	const found = find(editor.doc.steps, stepIdOf(step.step_id))?.step;
	const asked = step.input?.message;
	const message = typeof asked === "string" ? asked : null;
	return (
		<div className="flex shrink-0 flex-wrap items-center gap-2 bg-waiting-soft px-4 py-2">
			<p className="min-w-0 flex-1 basis-40 break-words">
				<span className="font-medium">{found ? title(found) : step.step_id}</span>
				{message ? `: ${message}` : step.reason && `: ${reasonText(step.reason)}`}
			</p>
			{step.type === "flow.approval" && <AnswerButtons run={run} step={step.step_id} message={message} small />}
		</div>
	);
}
