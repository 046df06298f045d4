import type { Schema } from "@/api/client";
import { bareExpression } from "@/shared/canvas";
import { AnswerButtons } from "@/shared/run/answer";
import { Until } from "@/shared/run/until";
import { reasonText } from "@/shared/run/words";
import type { Spot } from "@/shared/workflow/model";
import { isBlock } from "@/shared/workflow/model";
import { StatusBadge } from "@/ui/status";
import { Duration, fullTime } from "@/ui/time";
import { RunLink } from "../header";
import { handledWords, type Outcomes, outcomeOf } from "../model/outcome";
import type { RunRecord, StepHead } from "../model/record";
import { responseOf } from "../model/response";
import { roundsOf, tally } from "../model/rounds";
import { useTotal } from "../use-run";
import { EmptyText, Fact, Facts, Failure } from "./parts";

interface SummaryProps {
	run: string;
	record: RunRecord;
	outcomes: Outcomes;
	spot: Spot | undefined;
	path: string;
	body: Schema["RunStep"] | undefined;
}

/** StepSummary explains the state of a step: why it failed or was skipped, or what it is waiting for. */
export function StepSummary({ run, record, outcomes, spot, path, body }: SummaryProps) {
	const head = record.steps.get(path);
	if (!head) return <NotStarted record={record} spot={spot} />;
	const wait = record.head?.waiting_for?.step_id === path ? record.head.waiting_for : undefined;
	const child = body?.output.run_id;
	return (
		<div className="flex flex-col gap-4">
			{head.error && <Failure {...head.error} status={responseOf(body?.output)?.status} />}
			{head.status === "failed" && spot?.step.on_error === "continue" && (
				<p className="rounded-6 bg-waiting-soft px-3 py-2">
					The run went on in spite of this failure: that is how the step handles errors.
				</p>
			)}
			{head.reason && <Reason head={head} until={wait?.until} run={run} asked={body?.input.message} />}
			{outcomeOf(head, outcomes) === "rejected" && <Rejection output={body?.output} />}
			{head.pinned && (
				<p className="rounded-6 bg-sunken px-3 py-2">This step was not executed. It returned its pinned data.</p>
			)}
			<Facts>
				<Fact name="Status">
					<StatusBadge status={outcomeOf(head, outcomes)} />
				</Fact>
				<Fact name="Action">
					<code className="font-mono text-12">{head.type}</code>
				</Fact>
				{spot?.step.if !== undefined && (
					<Fact name="Only if">
						<code className="font-mono text-12">{bareExpression(String(spot.step.if))}</code>
					</Fact>
				)}
				{spot && isBlock(spot.step) && (
					<LoopFact run={run} record={record} spot={spot} path={path} handled={outcomes.handled.get(path)} />
				)}
				<Fact name={head.status === "skipped" ? "Skipped" : "Started"}>{fullTime(head.started_at)}</Fact>
				{head.finished_at && head.status !== "skipped" && <Fact name="Finished">{fullTime(head.finished_at)}</Fact>}
				{head.status !== "skipped" && (
					<Fact name="Duration">
						<Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />
					</Fact>
				)}
				{head.attempt > 0 && (
					<Fact name="Attempt">
						{head.attempt}
						{spot?.step.retry?.max_attempts ? ` of ${spot.step.retry.max_attempts}` : ""}
					</Fact>
				)}
				{head.type === "flow.run" && typeof child === "string" && (
					<Fact name="Started run">
						<RunLink id={child}>Open run</RunLink>
					</Fact>
				)}
			</Facts>
		</div>
	);
}

function Reason({ head, until, run, asked }: { head: StepHead; until?: string | null; run: string; asked?: unknown }) {
	const waiting = head.status === "waiting";
	const message = typeof asked === "string" ? asked : null;
	return (
		<div className={waiting ? "rounded-6 bg-waiting-soft px-3 py-2" : "rounded-6 bg-sunken px-3 py-2"}>
			{message && <p className="mb-1 font-medium break-words whitespace-pre-line">{message}</p>}
			<p className="break-words">
				{reasonText(head.reason ?? "")} <Until at={until} />
			</p>
			{waiting && head.type === "flow.approval" && (
				<div className="mt-2">
					<AnswerButtons run={run} step={head.step_id} message={message} small />
				</div>
			)}
		</div>
	);
}

/** Rejection says who rejected, and why. */
function Rejection({ output }: { output: Schema["RunStep"]["output"] | undefined }) {
	const comment = output?.comment;
	return (
		<div className="rounded-6 bg-failed-soft px-3 py-2">
			<p>{output?.by ? "Rejected." : "Nobody answered in time, which counts as a rejection here."} The run went on.</p>
			{typeof comment === "string" && comment && <p className="mt-1 break-words whitespace-pre-line">“{comment}”</p>}
		</div>
	);
}

interface LoopFactProps {
	run: string;
	record: RunRecord;
	spot: Spot;
	path: string;
	handled: number | undefined;
}

function LoopFact({ run, record, spot, path, handled }: LoopFactProps) {
	const total = useTotal(run, record, path, spot.step);
	return (
		<Fact name="Rounds">
			{tally(roundsOf(record, path, spot.step), total)}
			{handled !== undefined && ` · ${handledWords(handled)}`}
		</Fact>
	);
}

/** NotStarted describes a step that the run has not reached, and may never reach. */
function NotStarted({ record, spot }: Pick<SummaryProps, "record" | "spot">) {
	const over = record.head?.finished_at != null;
	return (
		<div className="flex flex-col gap-4">
			<EmptyText>{over ? "The run ended before this step." : "This step has not started yet."}</EmptyText>
			{spot && (
				<Facts>
					{spot.step.uses && (
						<Fact name="Action">
							<code className="font-mono text-12">{spot.step.uses}</code>
						</Fact>
					)}
					{spot.step.needs && spot.step.needs.length > 0 && <Fact name="After">{spot.step.needs.join(", ")}</Fact>}
					{spot.step.if !== undefined && (
						<Fact name="Only if">
							<code className="font-mono text-12">{bareExpression(String(spot.step.if))}</code>
						</Fact>
					)}
				</Facts>
			)}
		</div>
	);
}
