import { StatusIcon, statuses } from "@/ui/status";
import { Duration, duration, fullTime } from "@/ui/time";
import type { StepHead } from "../model/record";
import { EmptyText } from "./parts";

/** Attempts lists the attempts of a step, with the delay before each. */
export function Attempts({ head }: { head: StepHead | undefined }) {
	if (!head || head.attempts.length === 0) return <EmptyText>This step has no attempts.</EmptyText>;
	return (
		<ol className="flex flex-col gap-3">
			{head.attempts.map((attempt, at) => {
				const before = head.attempts[at - 1]?.finished_at;
				const pause = before ? Date.parse(attempt.started_at) - Date.parse(before) : 0;
				return (
					<li key={attempt.attempt} className="rounded-8 border px-3 py-2">
						<div className="flex items-center gap-2">
							<StatusIcon status={attempt.status} />
							<span className="font-medium">Attempt {attempt.attempt}</span>
							<span className="text-muted">{statuses[attempt.status].name.toLowerCase()}</span>
							<span className="flex-1" />
							<span className="text-muted">
								<Duration ms={attempt.duration_ms} since={attempt.finished_at ? null : attempt.started_at} />
							</span>
						</div>
						<p className="mt-1 text-12 text-muted">
							{fullTime(attempt.started_at)}
							{pause > 0 && ` · after waiting ${duration(pause)}`}
						</p>
						{attempt.error && (
							<p className="mt-1 break-words">
								<code className="mr-2 font-mono text-12 text-failed">{attempt.error.code}</code>
								{attempt.error.message}
							</p>
						)}
					</li>
				);
			})}
		</ol>
	);
}
