import { triggerIcon } from "@/shared/triggers";
import { Link } from "@/ui/link";
import { StatusIcon } from "@/ui/status";
import { type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { type Activity, percent, type RecentRun, triggerLabels, type Workflow } from "./activity";
import { RowActions } from "./row-actions";
import { Sparkline } from "./spark";
import { StateBadge } from "./state";

const columns: Column<Workflow>[] = [
	{ key: "name", header: "Name", cell: (row) => <Name workflow={row} />, className: "w-full max-w-0 min-w-52" },
	{ key: "state", header: "State", cell: (row) => <StateBadge state={row.state} />, wide: true },
	{ key: "triggers", header: "Triggers", cell: (row) => <Triggers activity={row.activity} />, wide: "lg" },
	{
		key: "last",
		header: "Last run",
		cell: (row) => <LastRun run={row.activity?.last_run ?? null} />,
		wide: true,
	},
	{ key: "recent", header: "Recent runs", cell: (row) => <Recent activity={row.activity} />, wide: true },
	{
		key: "next",
		header: "Next run",
		cell: (row) => <RelativeTime at={row.activity?.next_run_at} never="–" />,
		wide: "lg",
	},
	{
		key: "actions",
		header: <span className="sr-only">Actions</span>,
		cell: (row) => <RowActions workflow={row} />,
		align: "right",
	},
];

export function Rows({ workflows }: { workflows: Workflow[] }) {
	return <Table label="Workflows" columns={columns} rows={workflows} rowKey={(row) => row.id} />;
}

function Name({ workflow }: { workflow: Workflow }) {
	const { id, name, activity } = workflow;
	return (
		<div className="flex min-w-0 flex-col gap-1">
			<Link plain to="/workflows/$id" params={{ id }} className="row-link truncate font-medium" title={name}>
				{name}
			</Link>
			<div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 sm:hidden">
				<StateBadge state={workflow.state} />
				{activity?.last_run && <LastRun run={activity.last_run} />}
			</div>
		</div>
	);
}

function Triggers({ activity }: { activity?: Activity }) {
	const kinds = triggerLabels(activity?.triggers ?? []);
	if (kinds.length === 0) return <span className="text-muted">–</span>;
	return (
		<ul className="flex flex-col gap-0.5">
			{kinds.map(({ type, text }) => {
				const Shape = triggerIcon(type);
				return (
					<li key={type} className="flex items-center gap-1.5 whitespace-nowrap">
						<Shape size={14} className="text-muted" />
						{text}
					</li>
				);
			})}
		</ul>
	);
}

function LastRun({ run }: { run: RecentRun | null }) {
	if (!run) return <span className="whitespace-nowrap text-muted">Not run yet</span>;
	return (
		<Link plain to="/runs/$id" params={{ id: run.id }} className="row-control inline-flex items-center gap-1.5">
			<StatusIcon status={run.status} size={14} />
			<RelativeTime at={run.started_at} />
		</Link>
	);
}

function Recent({ activity }: { activity?: Activity }) {
	if (!activity || activity.recent.length === 0) return <span className="text-muted">–</span>;
	const { recent, success_rate: rate } = activity;
	return (
		<span className="flex items-center gap-2">
			<Sparkline recent={recent} />
			{rate !== null && (
				<span className="w-11 text-right whitespace-nowrap tabular">
					{percent(rate)}
					<span className="sr-only"> of finished runs succeeded</span>
				</span>
			)}
		</span>
	);
}
