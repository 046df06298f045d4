import type { ReactNode } from "react";
import { useConnection } from "@/shared/connections/data";
import { Repair } from "@/shared/connections/repair";
import { AnswerButtons } from "@/shared/run/answer";
import { Until } from "@/shared/run/until";
import { reasonText } from "@/shared/run/words";
import { find, type Step } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { CopyButton } from "@/ui/copy";
import { type Status, StatusIcon } from "@/ui/status";
import { fullTime } from "@/ui/time";
import { hintFor } from "./model/hints";
import { parsePath } from "./model/path";
import type { Head, RunRecord } from "./model/record";
import { responseOf } from "./model/response";
import { waitOf } from "./model/wait";
import type { Selection } from "./selection";
import { useStep } from "./use-run";

interface BannerProps {
	record: RunRecord;
	selection: Selection;
	steps: readonly Step[];
}

/** Banner shows why a run failed and what to do about it, or what it is waiting for. */
export function Banner({ record, selection, steps }: BannerProps) {
	const { head } = record;
	if (head?.error)
		return <Failure head={head} error={head.error} record={record} selection={selection} steps={steps} />;
	const wait = waitOf(record);
	return head && wait ? <Waiting run={head.id} wait={wait} record={record} selection={selection} /> : null;
}

interface WaitingProps {
	run: string;
	wait: NonNullable<Head["waiting_for"]>;
	record: RunRecord;
	selection: Selection;
}

function Waiting({ run, wait, record, selection }: WaitingProps) {
	const path = wait.step_id;
	const asks = path !== null && record.steps.get(path)?.type === "flow.approval";
	const message = useStep(run, record, asks ? path : "").data?.input.message;
	return (
		<Strip status="waiting">
			<div className="min-w-0 flex-1 basis-60 break-words">
				{typeof message === "string" && <p className="font-medium whitespace-pre-line">{message}</p>}
				<p>
					{reasonText(wait.reason)} <Until at={wait.until} />
				</p>
			</div>
			{wait.kind === "connection" && wait.connection && <BrokenConnection name={wait.connection} />}
			{path !== null && (
				<Button small onClick={() => selection.select(path)}>
					Show step
				</Button>
			)}
			{asks && <AnswerButtons run={run} step={path} message={typeof message === "string" ? message : null} small />}
		</Strip>
	);
}

/** BrokenConnection offers to reconnect the connection that a run waits for. */
function BrokenConnection({ name }: { name: string }) {
	const connection = useConnection(name);
	return connection ? <Repair connection={connection} primary /> : null;
}

function Failure({
	head,
	error,
	record,
	selection,
	steps,
}: BannerProps & { head: Head; error: NonNullable<Head["error"]> }) {
	const path = error.step_id;
	const step = path === null ? undefined : record.steps.get(path);
	const most = path === null ? undefined : find(steps, parsePath(path).id)?.step.retry?.max_attempts;
	const attempt = step && `Attempt ${step.attempt}${most ? ` of ${most}` : ""}`;
	const response = responseOf(useStep(head.id, record, error.code === "http_error" ? (path ?? "") : "").data?.output);
	const hint = hintFor(error.code, response?.status);
	const details = () =>
		[
			`Run ${head.id} of ${head.workflow_id}, version ${head.workflow_version}`,
			`Failed at ${fullTime(head.finished_at ?? head.started_at)}`,
			path && `Step ${path}${step ? ` (${step.type}), attempt ${step.attempt}` : ""}`,
			`${error.code}: ${error.message}`,
			response?.beginning && `Response: ${response.beginning}`,
			location.href,
		]
			.filter(Boolean)
			.join("\n");
	return (
		<Strip status="failed" alert>
			<div className="min-w-0 flex-1 basis-60">
				<p className="font-medium break-words">{error.message}</p>
				<p className="mt-0.5 flex flex-wrap items-center gap-x-3 text-muted">
					{path !== null && (
						<button
							type="button"
							onClick={() => selection.select(path)}
							className="max-w-full truncate rounded-6 text-text underline"
						>
							{step?.name ?? path}
						</button>
					)}
					<code className="font-mono text-12">{error.code}</code>
					{attempt && <span>{attempt}</span>}
					{hint && <span className="basis-full">{hint}</span>}
				</p>
				{path !== null && response?.beginning && (
					<p className="mt-1.5 flex max-w-3xl items-start gap-3">
						<code className="line-clamp-3 min-w-0 rounded-6 bg-surface px-2 py-1 font-mono text-12 break-all">
							{response.beginning}
						</code>
						<button
							type="button"
							onClick={() => selection.select(path, "output")}
							className="shrink-0 rounded-6 py-1 text-12 underline"
						>
							Show response
						</button>
					</p>
				)}
			</div>
			<CopyButton value={details} label="Copy details" text />
		</Strip>
	);
}

function Strip({ status, alert, children }: { status: Status; alert?: boolean; children: ReactNode }) {
	return (
		<section
			aria-label={alert ? "Why the run failed" : "What the run is waiting for"}
			className={cx(
				"flex flex-wrap items-start gap-x-3 gap-y-2 border-b py-2.5 pr-4",
				alert ? "border-l-4 border-l-failed bg-failed-soft pl-3" : "bg-waiting-soft pl-4",
			)}
		>
			<span className="mt-0.5 flex">
				<StatusIcon status={status} />
			</span>
			{children}
		</section>
	);
}
