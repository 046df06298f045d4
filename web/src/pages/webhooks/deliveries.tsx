import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useLiveQueries } from "@/live/hooks";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { NativeSelect, TextInput } from "@/ui/field";
import { SearchIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { duration, RelativeTime } from "@/ui/time";
import type { Delivery } from "./data";
import { type EventName, events } from "./events";
import { useRefreshWhenDue } from "./refresh-when-due";
import { DeliveryBadge, type DeliveryStatus, statuses } from "./status";

type Filter = "status" | "event" | "run_id";

/** Deliveries is the delivery log of a webhook. */
export function Deliveries({ id }: { id: string }) {
	const [filters, setFilters] = useFilters<Filter>();
	const query = {
		status: filters.status && filters.status in statuses ? (filters.status as DeliveryStatus) : undefined,
		event: events.find(({ name }) => name === filters.event)?.name as EventName | undefined,
		run_id: filters.run_id || undefined,
	};
	const key = ["webhooks", id, "deliveries", query];
	const pages = usePages<Delivery>(key, (cursor, signal) =>
		got(
			api.GET("/v1/webhooks/{id}/deliveries", {
				params: { path: { id }, query: { ...query, limit: 50, cursor } },
				signal,
			}),
		),
	);
	useLiveQueries("*", ["webhooks", id, "deliveries"]);
	useRefreshWhenDue(pages.items, key, pages.dataUpdatedAt);
	const filtered = Boolean(query.status || query.event || query.run_id);
	const clear = () => setFilters({ status: undefined, event: undefined, run_id: undefined });
	return (
		<Card>
			<search className="flex flex-wrap gap-2 border-b p-3">
				<NativeSelect
					aria-label="Status"
					className="w-36"
					value={query.status ?? ""}
					onChange={(event) => setFilters({ status: event.target.value })}
					options={[
						{ value: "", label: "Any status" },
						...Object.entries(statuses).map(([value, { name }]) => ({ value, label: name })),
					]}
				/>
				<NativeSelect
					aria-label="Event"
					className="w-44"
					value={query.event ?? ""}
					onChange={(event) => setFilters({ event: event.target.value })}
					options={[{ value: "", label: "Any event" }, ...events.map(({ name }) => ({ value: name, label: name }))]}
				/>
				<span className="relative min-w-0 flex-1 basis-44">
					<SearchIcon className="pointer-events-none absolute top-2 left-2 text-muted" />
					<TextInput
						type="search"
						aria-label="Run ID"
						placeholder="Run ID"
						spellCheck={false}
						value={filters.run_id ?? ""}
						onChange={(event) => setFilters({ run_id: event.target.value.trim() }, { replace: true })}
						className="pl-8"
					/>
				</span>
			</search>
			<Paged pages={pages} empty={<NoDeliveries filtered={filtered} onClear={clear} />}>
				{(items) => <Table label="Deliveries" columns={columns} rows={items} rowKey={(delivery) => delivery.id} />}
			</Paged>
		</Card>
	);
}

const columns: Column<Delivery>[] = [
	{
		key: "event",
		header: "Event",
		className: "w-full max-w-0 min-w-44",
		cell: (delivery) => (
			<div className="flex min-w-0 flex-col gap-1">
				<span className="flex min-w-0 items-center gap-2">
					<Link
						plain
						to="/webhooks/$id/deliveries/$delivery"
						params={{ id: delivery.webhook_id, delivery: delivery.id }}
						className="row-link truncate font-mono text-12"
					>
						{delivery.event}
					</Link>
					{delivery.sample && <Badge>Sample</Badge>}
				</span>
				<span className="flex flex-wrap items-center gap-2 sm:hidden">
					<DeliveryBadge status={delivery.status} />
					<RelativeTime at={delivery.created_at} />
				</span>
			</div>
		),
	},
	{
		key: "status",
		header: "Status",
		wide: true,
		cell: (delivery) => <DeliveryBadge status={delivery.status} />,
	},
	{ key: "last", header: "Last attempt", wide: true, cell: (delivery) => <LastAttempt of={delivery} /> },
	{
		key: "attempts",
		header: "Attempts",
		wide: true,
		align: "right",
		cell: (delivery) => delivery.attempt_count,
	},
	{
		key: "next",
		header: "Next attempt",
		wide: true,
		cell: (delivery) => <RelativeTime at={delivery.next_at} never="–" />,
	},
	{
		key: "created",
		header: "Created",
		wide: true,
		cell: (delivery) => <RelativeTime at={delivery.created_at} />,
	},
];

function LastAttempt({ of: { last_attempt: last } }: { of: Delivery }) {
	if (!last) return <span className="text-muted">–</span>;
	return (
		<span className="block max-w-52 truncate" title={last.error ?? undefined}>
			{last.status_code === null ? (last.error ?? "No response") : `Status ${last.status_code}`}{" "}
			<span className="text-muted">in {duration(last.duration_ms)}</span>
		</span>
	);
}

function NoDeliveries({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
	if (filtered)
		return (
			<EmptyState title="No deliveries match" actions={<Button onClick={onClear}>Clear filters</Button>}>
				Deliveries are stored for seven days.
			</EmptyState>
		);
	return (
		<EmptyState title="No deliveries in the last seven days">
			Send a test event to check that your server responds.
		</EmptyState>
	);
}
