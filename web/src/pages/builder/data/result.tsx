import { type ReactNode, useState } from "react";
import { RunData } from "@/shared/files/run-data";
import { cx } from "@/ui/class";
import { type Outcome, StatusBadge } from "@/ui/status";
import { Duration, timeOfDay } from "@/ui/time";

export interface LogEntry {
	at: string;
	level: string;
	message: string;
}

export interface ResultProps {
	status: Outcome;
	duration: number | null;
	/** The start time, while it is running. */
	since?: string | null;
	input?: unknown;
	output?: unknown;
	/** The JSON pointers of the references to files. */
	inputFiles?: readonly string[];
	outputFiles?: readonly string[];
	error: { code: string; message: string } | null;
	reason: string | null;
	logs?: readonly LogEntry[];
	/** Shown next to the status. */
	aside?: ReactNode;
}

type Part = "output" | "input" | "logs";

/** ResultView shows the outcome of a step: its status, and its output, input or logs. */
export function ResultView({
	status,
	duration,
	since,
	input,
	output,
	inputFiles,
	outputFiles,
	error,
	reason,
	logs,
	aside,
}: ResultProps) {
	const [part, setPart] = useState<Part>("output");
	const parts: { value: Part; label: string }[] = [
		{ value: "output", label: "Output" },
		{ value: "input", label: "Input" },
		...(logs ? [{ value: "logs" as const, label: `Logs ${logs.length}` }] : []),
	];
	return (
		<div className="flex h-full min-h-0 min-w-0 flex-col">
			<div className="flex shrink-0 flex-wrap items-center gap-3 px-4 pt-3 pb-2">
				<StatusBadge status={status} />
				{duration !== null && (
					<span className="text-muted">
						<Duration ms={duration} since={since} />
					</span>
				)}
				{aside}
				<div role="group" aria-label="Show" className="ml-auto flex rounded-6 border p-0.5">
					{parts.map(({ value, label }) => (
						<button
							key={value}
							type="button"
							aria-pressed={part === value}
							onClick={() => setPart(value)}
							className={cx(
								"h-6 rounded-6 px-2 text-12",
								part === value ? "bg-accent-soft font-medium text-accent" : "text-muted hover:text-text",
							)}
						>
							{label}
						</button>
					))}
				</div>
			</div>
			{error && (
				<p className="mx-4 mb-2 rounded-6 bg-failed-soft px-3 py-2 break-words text-failed">
					{error.message} <span className="font-mono text-12">{error.code}</span>
				</p>
			)}
			{reason && <p className="mx-4 mb-2 rounded-6 bg-waiting-soft px-3 py-2 break-words text-waiting">{reason}</p>}
			<div className="min-h-0 flex-1 overflow-auto px-4 pb-3">
				{part === "output" && <RunData label="Output" value={output ?? {}} files={outputFiles} height="fill" />}
				{part === "input" && <RunData label="Input" value={input ?? {}} files={inputFiles} height="fill" />}
				{part === "logs" && <Logs logs={logs ?? []} />}
			</div>
		</div>
	);
}

function Logs({ logs }: { logs: readonly LogEntry[] }) {
	if (logs.length === 0) return <p className="text-muted">This step has no log entries.</p>;
	return (
		<ol className="font-mono text-12">
			{logs.map((line, i) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: lines are never moved
				<li key={i} className="flex gap-3">
					<span className="shrink-0 text-muted">{timeOfDay(Date.parse(line.at))}</span>
					<span
						className={cx(
							"shrink-0",
							line.level === "error" ? "text-failed" : line.level === "warn" ? "text-waiting" : "text-muted",
						)}
					>
						{line.level}
					</span>
					<span className="min-w-0 break-words whitespace-pre-wrap">{line.message}</span>
				</li>
			))}
		</ol>
	);
}
