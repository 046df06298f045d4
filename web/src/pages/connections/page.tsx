import { useNavigate } from "@tanstack/react-router";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { type Connection, serviceName, useIntegrations, useLiveConnections } from "@/shared/connections/data";
import { ConnectDialog } from "@/shared/connections/dialog";
import { ConnectionStatus, statusTodo } from "@/shared/connections/status";
import { IconTile, markOf } from "@/shared/mark";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Button } from "@/ui/button";
import { PlugIcon, PlusIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { sentence } from "@/ui/sentence";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { RowActions } from "./row-actions";

export default function Connections() {
	const [filters, setFilters] = useFilters<"new">();
	const write = useMay("write");
	const navigate = useNavigate();
	const integrations = useIntegrations().data;
	const pages = usePages<Connection>(["connections", "list"], (cursor, signal) =>
		got(api.GET("/v1/connections", { params: { query: { limit: 50, cursor } }, signal })),
	);
	useLiveConnections();
	const create = () => write && setFilters({ new: "1" });
	useShortcut("N", "New connection", create, "Connections");
	const newButton = write && (
		<Button kind="primary" icon={PlusIcon} onClick={create}>
			New connection
		</Button>
	);
	return (
		<Page>
			<PageHeader title="Connections" lead="The accounts with which steps reach other services." actions={newButton} />
			<Card>
				<Paged
					pages={pages}
					empty={
						<EmptyState icon={PlugIcon} title="No connections yet" actions={newButton}>
							Connect a service once, and use it in any workflow. The credential is encrypted and never shown again.
						</EmptyState>
					}
				>
					{(items) => (
						<Table
							label="Connections"
							rows={items}
							rowKey={({ id }) => id}
							columns={[nameColumn((one) => serviceName(one, integrations)), ...columns, ...(write ? [actions] : [])]}
						/>
					)}
				</Paged>
			</Card>
			{write && filters.new && (
				<ConnectDialog
					onClose={() => setFilters({ new: undefined }, { replace: true })}
					onConnected={({ id }) => void navigate({ to: "/connections/$id", params: { id }, replace: true })}
				/>
			)}
		</Page>
	);
}

const nameColumn = (service: (connection: Connection) => string): Column<Connection> => ({
	key: "name",
	header: "Name",
	className: "w-full max-w-0 min-w-24 sm:min-w-40",
	cell: (connection) => (
		<div className="flex min-w-0 items-center gap-3">
			<IconTile
				icon={connection.integration === null ? PlugIcon : markOf(connection.integration)}
				className="bg-sunken text-muted"
			/>
			<div className="min-w-0">
				<Link
					plain
					to="/connections/$id"
					params={{ id: connection.id }}
					className="row-link block truncate font-medium"
				>
					{connection.name}
				</Link>
				<span className="block truncate text-12 text-muted">
					{[service(connection), connection.account].filter(Boolean).join(" · ")}
				</span>
			</div>
		</div>
	),
});

const columns: Column<Connection>[] = [
	{
		key: "status",
		header: "Status",
		cell: ({ status, problem }) => (
			<div className="min-w-0">
				<ConnectionStatus status={status} />
				<span className="block max-w-64 truncate text-12 text-muted max-sm:hidden" title={problem ?? undefined}>
					{problem ? sentence(problem) : statusTodo(status)}
				</span>
			</div>
		),
	},
	{
		key: "used_by",
		header: "Used by",
		wide: "lg",
		cell: ({ used_by: users }) => (
			<span className="whitespace-nowrap" title={users.map(({ name }) => name).join("\n") || undefined}>
				{users.length === 0 ? <span className="text-muted">no workflow</span> : countOf(users.length, "workflow")}
			</span>
		),
	},
	{
		key: "waiting",
		header: "Waiting runs",
		wide: true,
		align: "right",
		cell: ({ waiting_runs: waiting }) => (waiting > 0 ? <strong>{waiting}</strong> : waiting),
	},
	{
		key: "used",
		header: "Last used",
		wide: true,
		cell: (connection) => (connection.last_used_at ? <RelativeTime at={connection.last_used_at} /> : "never"),
	},
];

const actions: Column<Connection> = {
	key: "actions",
	header: <span className="sr-only">Actions</span>,
	align: "right",
	cell: (connection) => <RowActions connection={connection} />,
};

const maxUsers = 100;

/** countOf returns "1 workflow" or "3 workflows"; the API lists at most 100. */
const countOf = (count: number, noun: string) =>
	`${count}${count === maxUsers ? " or more" : ""} ${noun}${count === 1 ? "" : "s"}`;
