import type { Schema } from "@/api/client";
import { bare } from "@/builder/canvas/view";
import type { Spot } from "@/builder/model";
import { isBlock } from "@/builder/model";
import { StatusBadge } from "@/ui/status";
import { Duration, fullTime } from "@/ui/time";
import { AnswerButtons } from "../answer";
import { RunLink } from "../header";
import type { RunRecord, StepHead } from "../model/record";
import { roundsOf, tally } from "../model/rounds";
import { sentence } from "../model/words";
import { useTotal } from "../use-run";
import { Fact, Facts, Failure, Nothing } from "./parts";
import { Until } from "./until";

interface SummaryProps {
	run: string;
	record: RunRecord;
	spot: Spot | undefined;
	path: string;
	body: Schema["RunStep"] | undefined;
}

/** StepSummary says how a step stands: why it failed or was skipped, what it waits for and until when. */
export function StepSummary({ run, record, spot, path, body }: SummaryProps) {
	const head = record.steps.get(path);
	if (!head) return <Ahead record={record} spot={spot} />;
	const wait = record.head?.waiting_for?.step_id === path ? record.head.waiting_for : undefined;
	const child = body?.output.run_id;
	return (
		<div className="flex flex-col gap-4">
			{head.error && <Failure {...head.error} />}
			{head.reason && <Reason head={head} until={wait?.until} run={run} asked={body?.input.message} />}
			{head.pinned && (
				<p className="rounded-6 bg-sunken px-3 py-2">Answered with its pinned data instead of being executed.</p>
			)}
			<Facts>
				<Fact name="Status">
					<StatusBadge status={head.status} />
				</Fact>
				<Fact name="Action">
					<code className="font-mono text-12">{head.type}</code>
				</Fact>
				{spot?.step.if !== undefined && (
					<Fact name="Only if">
						<code className="font-mono text-12">{bare(String(spot.step.if))}</code>
					</Fact>
				)}
				{spot && isBlock(spot.step) && <LoopFact run={run} record={record} spot={spot} path={path} />}
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
						<RunLink id={child}>Open it</RunLink>
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
				{sentence(head.reason ?? "")} <Until at={until} />
			</p>
			{waiting && head.type === "flow.approval" && (
				<div className="mt-2">
					<AnswerButtons run={run} step={head.step_id} message={message} small />
				</div>
			)}
		</div>
	);
}

function LoopFact({ run, record, spot, path }: { run: string; record: RunRecord; spot: Spot; path: string }) {
	const total = useTotal(run, record, path, spot.step);
	return <Fact name="Rounds">{tally(roundsOf(record, path, spot.step), total)}</Fact>;
}

/** Ahead is a step that the run has not come to, and maybe never will. */
function Ahead({ record, spot }: Pick<SummaryProps, "record" | "spot">) {
	const over = record.head?.finished_at != null;
	return (
		<div className="flex flex-col gap-4">
			<Nothing>{over ? "The run ended before this step." : "This step has not started yet."}</Nothing>
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
							<code className="font-mono text-12">{bare(String(spot.step.if))}</code>
						</Fact>
					)}
				</Facts>
			)}
		</div>
	);
}
