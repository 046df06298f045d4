import { originOf } from "@/shared/run/origin";
import { waitingText } from "@/shared/run/words";
import { Badge } from "@/ui/badge";
import { Checkbox } from "@/ui/field";
import { Link } from "@/ui/link";
import { StatusIcon, statuses } from "@/ui/status";
import { type Column, Table } from "@/ui/table";
import { Duration, RelativeTime } from "@/ui/time";
import { type Run, shownStatus } from "./merge";

export interface RunTableProps {
	runs: Run[];
	picked: ReadonlySet<string>;
	/** Omitted for users who may not act on runs. */
	onPick?: (picked: ReadonlySet<string>) => void;
}

export function RunTable({ runs, picked, onPick }: RunTableProps) {
	const pick = (id: string, on: boolean) => {
		const next = new Set(picked);
		if (on) next.add(id);
		else next.delete(id);
		onPick?.(next);
	};
	const all = runs.length > 0 && runs.every((run) => picked.has(run.id));
	const box: Column<Run> = {
		key: "pick",
		header: (
			<span className="flex">
				<Checkbox
					aria-label="Select all runs that are loaded"
					checked={all}
					onChange={() => onPick?.(new Set(all ? [] : runs.map((run) => run.id)))}
				/>
			</span>
		),
		className: "w-8 !pr-0",
		cell: (run) => (
			<span className="row-control -m-2 flex p-2">
				<Checkbox
					aria-label={`Select the run of ${run.workflow_name}`}
					checked={picked.has(run.id)}
					onChange={(event) => pick(run.id, event.target.checked)}
				/>
			</span>
		),
	};
	return (
		<Table
			label="Runs"
			rows={runs}
			rowKey={(run) => run.id}
			rowClass={(run) => (picked.has(run.id) ? "bg-accent-soft" : undefined)}
			columns={onPick ? [box, ...columns] : columns}
		/>
	);
}

/** why returns why a run failed, or what it is waiting for. */
function why(run: Run): string | undefined {
	if (run.error) return run.error.message;
	return run.status === "running" && run.waiting_for ? waitingText(run.waiting_for.reason) : undefined;
}

const columns: Column<Run>[] = [
	{
		key: "workflow",
		header: "Workflow",
		className: "w-full max-w-0",
		cell: (run) => (
			<div className="flex min-w-0 items-center gap-3">
				<StatusIcon status={shownStatus(run)} />
				<div className="min-w-0 flex-1">
					<div className="flex min-w-0 items-center gap-2">
						<Link
							to="/runs/$id"
							params={{ id: run.id }}
							className="row-link truncate font-medium !text-text"
							title={run.workflow_name}
						>
							{run.workflow_name}
						</Link>
						{run.draft && <Badge tone="accent">Draft</Badge>}
					</div>
					<p className="truncate text-12 text-muted" title={why(run)}>
						{why(run) ?? statuses[run.status].name}
						<span className="sm:hidden">
							{" · "}
							<RelativeTime at={run.started_at} />
						</span>
					</p>
				</div>
			</div>
		),
	},
	{
		key: "trigger",
		header: "Trigger",
		wide: true,
		className: "whitespace-nowrap",
		cell: (run) => (
			<span className="block max-w-56 truncate" title={originOf(run.trigger, run.started_by)}>
				{originOf(run.trigger, run.started_by)}
			</span>
		),
	},
	{ key: "started", header: "Started", wide: true, cell: (run) => <RelativeTime at={run.started_at} /> },
	{
		key: "duration",
		header: "Duration",
		align: "right",
		className: "whitespace-nowrap",
		cell: (run) => <Duration ms={run.duration_ms} since={run.finished_at ? null : run.started_at} />,
	},
];
