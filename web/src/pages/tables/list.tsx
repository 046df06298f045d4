import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { Button, IconButton } from "@/ui/button";
import { formatBytes, formatNumber } from "@/ui/format";
import { PlusIcon, TableIcon, TrashIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table as TableView } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { rowsOf, type Table } from "./data";
import { DeleteTableDialog } from "./delete-dialog";

/** TableList lists the tables of the workspace. */
export function TableList({ onNew }: { onNew: (what: "table" | "example") => void }) {
	const [deleting, setDeleting] = useState<Table>();
	const write = useMay("write");
	const client = useQueryClient();
	const pages = usePages<Table>(["tables", "list"], (cursor, signal) =>
		got(api.GET("/v1/tables", { params: { query: { limit: 50, cursor } }, signal })),
	);
	return (
		<Card>
			<Paged pages={pages} empty={<NoTables write={write} onNew={onNew} />}>
				{(items) => (
					<TableView
						label="Tables"
						columns={write ? [...columns, actions(setDeleting)] : columns}
						rows={items}
						rowKey={({ id }) => id}
					/>
				)}
			</Paged>
			{deleting && (
				<DeleteTableDialog
					table={deleting}
					onClose={() => setDeleting(undefined)}
					onDeleted={() => client.invalidateQueries({ queryKey: ["tables", "list"] })}
				/>
			)}
		</Card>
	);
}

const columns: Column<Table>[] = [
	{
		key: "name",
		header: "Name",
		className: "w-full max-w-0 min-w-40",
		cell: ({ id, name, columns, rows }) => (
			<div className="min-w-0">
				<Link plain to="/tables/$id" params={{ id }} title={name} className="row-link block truncate font-medium">
					{name}
				</Link>
				<p className="truncate text-12 text-muted">
					<span className="sm:hidden">{rowsOf(rows)} · </span>
					{columns.map((column) => column.name).join(", ")}
				</p>
			</div>
		),
	},
	{ key: "rows", header: "Rows", align: "right", wide: true, cell: ({ rows }) => formatNumber(rows) },
	{
		key: "size",
		header: "Size",
		align: "right",
		wide: true,
		className: "whitespace-nowrap",
		cell: ({ bytes }) => formatBytes(bytes),
	},
	{
		key: "changed",
		header: "Definition changed",
		wide: true,
		cell: (table) => <RelativeTime at={table.updated_at} />,
	},
];

function actions(onDelete: (table: Table) => void): Column<Table> {
	return {
		key: "actions",
		header: <span className="sr-only">Actions</span>,
		align: "right",
		cell: (table) => (
			<span className="row-control">
				<IconButton icon={TrashIcon} label={`Delete ${table.name}`} onClick={() => onDelete(table)} />
			</span>
		),
	};
}

function NoTables({ write, onNew }: { write: boolean; onNew: (what: "table" | "example") => void }) {
	return (
		<EmptyState
			icon={TableIcon}
			title="No tables yet"
			actions={
				write && (
					<>
						<Button onClick={() => onNew("example")}>Start from the example</Button>
						<Button kind="primary" icon={PlusIcon} onClick={() => onNew("table")}>
							New table
						</Button>
					</>
				)
			}
		>
			A table keeps rows between runs, such as orders that were already processed, or a list that several workflows
			share. For example, a table <code className="font-mono text-12">customers</code> with the key{" "}
			<code className="font-mono text-12">email</code> has one row per address, however often a workflow stores it.
		</EmptyState>
	);
}
