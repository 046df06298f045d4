import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useFilters } from "@/shell/filters";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { type OpenDialog, TableActions } from "./actions";
import { ColumnDialog, DropColumnDialog } from "./column-dialog";
import { contentOf, type Table, useTable } from "./data";
import { DeleteTableDialog } from "./delete-dialog";
import { ImportDialog } from "./import-dialog";
import { RenameDialog } from "./rename-dialog";
import { RowDialog } from "./row-dialog";
import { Rows } from "./rows";

export default function TablePage() {
	const { id = "" } = useParams({ strict: false });
	const { data, error, refetch } = useTable(id);
	if (data) return <TableContent key={id} table={data} />;
	return (
		<Page>
			<PageHeader title="Table" lead={<Link to="/tables">Tables</Link>} />
			<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
		</Page>
	);
}

function TableContent({ table }: { table: Table }) {
	const [filters, setFilters] = useFilters<"filter" | "sort">();
	const [dialog, setDialog] = useState<OpenDialog>();
	const navigate = useNavigate();
	const client = useQueryClient();
	const close = () => setDialog(undefined);
	const leave = async () => {
		await navigate({ to: "/tables", replace: true });
		client.removeQueries({ queryKey: ["tables", table.id] });
		await client.invalidateQueries({ queryKey: ["tables", "list"] });
	};
	/** The filter and the order must not name a column that no longer exists. */
	const forget = (name: string) => {
		const stale = filters.filter?.includes(JSON.stringify(name));
		const sorted = filters.sort === name || filters.sort === `-${name}`;
		if (stale || sorted)
			setFilters({ ...(stale && { filter: undefined }), ...(sorted && { sort: undefined }) }, { replace: true });
	};
	return (
		<Page className="max-w-none">
			<PageHeader
				title={table.name}
				lead={<Link to="/tables">Tables</Link>}
				badge={<span className="shrink-0 text-muted">{contentOf(table)}</span>}
				actions={<TableActions table={table} onOpen={setDialog} />}
			/>
			<Rows table={table} filter={filters.filter} sort={filters.sort} onChange={setFilters} onOpen={setDialog} />
			{dialog && <Dialogs table={table} dialog={dialog} onClose={close} onGone={forget} onDeleted={leave} />}
		</Page>
	);
}

interface DialogsProps {
	table: Table;
	dialog: OpenDialog;
	onClose: () => void;
	/** Called with a column name that no longer exists. */
	onGone: (name: string) => void;
	onDeleted: () => Promise<unknown>;
}

function Dialogs({ table, dialog, onClose, onGone, onDeleted }: DialogsProps) {
	switch (dialog.what) {
		case "row":
			return <RowDialog table={table} query={dialog.query} onClose={onClose} />;
		case "import":
			return <ImportDialog table={table} onClose={onClose} />;
		case "rename":
			return <RenameDialog table={table} onClose={onClose} />;
		case "add column":
			return <ColumnDialog table={table} onClose={onClose} />;
		case "change column":
			return <ColumnDialog table={table} column={dialog.column} onClose={onClose} onRenamed={onGone} />;
		case "drop column":
			return <DropColumnDialog table={table} column={dialog.column} onClose={onClose} onDropped={onGone} />;
		case "delete":
			return <DeleteTableDialog table={table} onClose={onClose} onDeleted={onDeleted} />;
	}
}
