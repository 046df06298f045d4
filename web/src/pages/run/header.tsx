import type { ReactNode } from "react";
import { originOf } from "@/shared/run/origin";
import { Badge } from "@/ui/badge";
import { cx } from "@/ui/class";
import { CopyButton } from "@/ui/copy";
import { Link } from "@/ui/link";
import { StatusBadge } from "@/ui/status";
import { Duration, RelativeTime } from "@/ui/time";
import { RunActions } from "./actions";
import { HandledBadge } from "./handled";
import type { Outcomes } from "./model/outcome";
import type { Head } from "./model/record";

export interface RunHeaderProps {
	head: Head;
	/** The current name and version of the workflow. */
	name: string | undefined;
	current: number | undefined;
	waits: boolean;
	outcomes: Outcomes;
}

/** RunHeader identifies the run and shows its status and actions. */
export function RunHeader({ head, name, current, waits, outcomes }: RunHeaderProps) {
	const handled = outcomes.handled.get("");
	return (
		<header className="flex flex-wrap items-start gap-x-6 gap-y-3 border-b bg-surface px-4 py-3">
			<div className="min-w-0 flex-1 basis-72">
				<div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
					<h1 className="min-w-0 truncate text-16 font-semibold">
						<Link to="/workflows/$id" params={{ id: head.workflow_id }} className="!text-text">
							{name ?? head.workflow_id}
						</Link>
					</h1>
					<StatusBadge status={waits ? "waiting" : head.status} />
					{outcomes.rejected.size > 0 && (
						<StatusBadge status="rejected">{rejections(outcomes.rejected.size)}</StatusBadge>
					)}
					{handled !== undefined && <HandledBadge count={handled} />}
				</div>
				<dl className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-muted">
					<Fact name="Run" className="max-sm:hidden">
						<span className="inline-flex items-center gap-1 font-mono text-12">
							{head.id}
							<span className="-my-1">
								<CopyButton value={head.id} label="Copy run ID" />
							</span>
						</span>
					</Fact>
					<Fact name="Version">{head.draft ? <Badge tone="accent">Draft</Badge> : `v${head.workflow_version}`}</Fact>
					<Fact name="Trigger">
						{originOf(head.trigger.type, head.started_by)}
						{head.trigger.id && head.trigger.type !== "run" && ` · ${head.trigger.id}`}
					</Fact>
					<Fact name="Started">
						<RelativeTime at={head.started_at} />
					</Fact>
					<Fact name="Duration">
						<Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />
					</Fact>
					{head.retry_of && (
						<Fact name="Retry of">
							<RunLink id={head.retry_of}>the previous run</RunLink>
						</Fact>
					)}
					{head.parent && (
						<Fact name="Started by">
							<RunLink id={head.parent.run_id} step={head.parent.step_id}>
								a step in another run
							</RunLink>
						</Fact>
					)}
				</dl>
			</div>
			<RunActions head={head} current={current} />
		</header>
	);
}

/** A run in which somebody said no has succeeded all the same. */
const rejections = (count: number) => (count === 1 ? "Approval rejected" : `${count} approvals rejected`);

export function RunLink({ id, step, children }: { id: string; step?: string; children: ReactNode }) {
	return (
		<Link to="/runs/$id" params={{ id }} search={(step ? { step } : {}) as never}>
			{children}
		</Link>
	);
}

function Fact({ name, className, children }: { name: string; className?: string; children: ReactNode }) {
	return (
		<div className={cx("flex items-center gap-1.5", className)}>
			<dt className="text-12">{name}</dt>
			<dd className="text-text">{children}</dd>
		</div>
	);
}
