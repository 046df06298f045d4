import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { api, got, type Schema } from "@/api/client";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { NativeSelect } from "@/ui/field";
import { formatBytes, formatNumber } from "@/ui/format";
import { PageHeader } from "@/ui/page";
import { ErrorState, Skeleton, SkeletonRows } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import type { Series } from "./chart";
import { SettingsFrame } from "./frame";
import { type Day, fillDays, planName } from "./plan";

const Chart = lazy(() => import("./chart").then(({ Chart }) => ({ default: Chart })));

const spans = { "7": "Last 7 days", "30": "Last 30 days", "90": "Last 90 days" };

export default function Usage() {
	const [filters, setFilters] = useFilters<"days">();
	const days = filters.days && filters.days in spans ? Number(filters.days) : 30;
	const usage = useQuery({
		queryKey: ["usage", days],
		queryFn: ({ signal }) => got(api.GET("/v1/usage", { params: { query: { days } }, signal })),
		refetchInterval: 30_000,
	});
	return (
		<SettingsFrame>
			<PageHeader
				title="Plan and usage"
				badge={usage.data && <Badge tone="accent">{planName(usage.data.plan)}</Badge>}
				lead="Limits, current usage and activity of this workspace. Days are in UTC."
				actions={
					<NativeSelect
						aria-label="Time"
						className="w-40"
						value={String(days)}
						onChange={(event) => setFilters({ days: event.target.value })}
						options={Object.entries(spans).map(([value, label]) => ({ value, label }))}
					/>
				}
			/>
			{usage.isPending ? (
				<SkeletonRows rows={8} />
			) : usage.error ? (
				<ErrorState error={usage.error} onRetry={() => usage.refetch()} />
			) : (
				<Report usage={usage.data} days={days} />
			)}
		</SettingsFrame>
	);
}

function Report({ usage, days }: { usage: Schema["Usage"]; days: number }) {
	const all = useMemo(() => fillDays(usage.days, days, new Date()), [usage.days, days]);
	const times = useMemo(() => all.map((day) => Date.parse(day.date) / 1000), [all]);
	const runs = useMemo(() => runSeries(all), [all]);
	const requests = useMemo(
		() => [{ label: "Requests", token: "accent", values: all.map((day) => day.requests) }],
		[all],
	);
	const total = (pick: (day: Day) => number) => all.reduce((sum, day) => sum + pick(day), 0);
	return (
		<>
			<div className="grid gap-6 lg:grid-cols-2">
				<ChartCard title="Finished runs" times={times} series={runs}>
					{formatNumber(total((day) => day.runs_started))} started
				</ChartCard>
				<ChartCard title="API requests" times={times} series={requests}>
					{formatNumber(total((day) => day.requests))} in total · limit of {formatNumber(usage.requests_per_minute)} per
					minute
				</ChartCard>
			</div>
			<Card>
				<h2 className="border-b px-4 py-3 text-14 font-semibold">Plan limits</h2>
				<Table
					label="Plan limits"
					rows={limitRows(usage)}
					rowKey={(row) => row.name}
					columns={[
						{ key: "name", header: "What is limited", className: "font-medium", cell: (row) => row.name },
						{
							key: "share",
							header: "Used",
							cell: (row) => row.used !== undefined && <UsageMeter used={row.used} of={row.limit} name={row.name} />,
						},
						{
							key: "used",
							header: "Current",
							align: "right",
							cell: (row) => (row.used === undefined ? "" : row.write(row.used)),
						},
						{ key: "limit", header: "Limit", align: "right", cell: (row) => row.write(row.limit) },
					]}
				/>
			</Card>
		</>
	);
}

function runSeries(days: Day[]): Series[] {
	return [
		{ label: "Succeeded", token: "succeeded", values: days.map((day) => day.runs_succeeded) },
		{ label: "Failed", token: "failed", values: days.map((day) => day.runs_failed) },
		{ label: "Cancelled", token: "cancelled", values: days.map((day) => day.runs_cancelled) },
	];
}

interface GraphProps {
	title: string;
	times: number[];
	series: Series[];
	children: React.ReactNode;
}

function ChartCard({ title, times, series, children }: GraphProps) {
	const sums = series.map(({ label, values }) => `${label}: ${formatNumber(values.reduce((a, b) => a + b, 0))}`);
	return (
		<Card className="flex flex-col gap-3 p-4">
			<div className="flex flex-wrap items-baseline justify-between gap-x-4">
				<h2 className="text-14 font-semibold">{title}</h2>
				<p className="text-12 text-muted">{children}</p>
			</div>
			<Suspense fallback={<Skeleton className="h-[200px]" />}>
				<Chart label={`${title}. ${sums.join(", ")}.`} times={times} series={series} />
			</Suspense>
			{series.length > 1 && (
				<ul className="flex flex-wrap gap-4 text-12 text-muted">
					{series.map((one, i) => (
						<li key={one.label} className="flex items-center gap-2">
							<span
								aria-hidden="true"
								className="size-2.5 rounded-full"
								style={{ background: `var(--${one.token})` }}
							/>
							{sums[i]}
						</li>
					))}
				</ul>
			)}
		</Card>
	);
}

interface LimitRow {
	name: string;
	used?: number;
	limit: number;
	write: (n: number) => string;
}

function limitRows({ limits, current }: Schema["Usage"]): LimitRow[] {
	return [
		{ name: "Workflows", used: current.workflows, limit: limits.workflows, write: formatNumber },
		{ name: "Concurrent runs", used: current.running_runs, limit: limits.concurrent_runs, write: formatNumber },
		{ name: "Webhooks", used: current.webhooks, limit: limits.webhooks, write: formatNumber },
		{ name: "API keys", used: current.api_keys, limit: limits.api_keys, write: formatNumber },
		{ name: "Secrets", used: current.secrets, limit: limits.secrets, write: formatNumber },
		{ name: "Variables", used: current.variables, limit: limits.variables, write: formatNumber },
		{ name: "Total size of variables", used: current.variable_bytes, limit: limits.variable_bytes, write: formatBytes },
		{ name: "Tables", used: current.tables, limit: limits.tables, write: formatNumber },
		{ name: "Rows of all tables", used: current.table_rows, limit: limits.table_rows, write: formatNumber },
		{ name: "Keys", used: current.state_keys, limit: limits.state_keys, write: formatNumber },
		{ name: "Total size of rows and keys", used: current.stored_bytes, limit: limits.stored_bytes, write: formatBytes },
		{
			name: "Total size of files",
			used: current.stored_file_bytes,
			limit: limits.stored_file_bytes,
			write: formatBytes,
		},
		{ name: "Size of a file", limit: limits.file_bytes, write: formatBytes },
		{ name: "Files that a run creates", limit: limits.run_file_bytes, write: formatBytes },
		{ name: "Size of a row", limit: limits.row_bytes, write: formatBytes },
		{ name: "Queued runs", limit: limits.queued_runs, write: formatNumber },
		{ name: "Steps per workflow", limit: limits.steps_per_workflow, write: formatNumber },
		{ name: "Executed steps per run", limit: limits.steps_per_run, write: formatNumber },
		{ name: "Payload of a run", limit: limits.payload_bytes, write: formatBytes },
		{ name: "Output of a step", limit: limits.output_bytes, write: formatBytes },
	];
}

function UsageMeter({ used, of, name }: { used: number; of: number; name: string }) {
	const share = of > 0 ? Math.min(1, used / of) : 0;
	const colour = share >= 0.9 ? "bg-failed" : share >= 0.75 ? "bg-waiting" : "bg-accent";
	return (
		<div
			role="meter"
			aria-label={name}
			aria-valuemin={0}
			aria-valuemax={of}
			aria-valuenow={used}
			className="h-1.5 w-full min-w-12 max-w-48 overflow-hidden rounded-full bg-sunken"
		>
			<div
				className={`h-full rounded-full ${colour}`}
				style={{ width: `${used > 0 ? Math.max(2, share * 100) : 0}%` }}
			/>
		</div>
	);
}
