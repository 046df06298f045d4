import { useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { callAll, type Progress } from "@/api/call-all";
import { api } from "@/api/client";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { TrashIcon } from "@/ui/icons";
import { ProgressBar } from "@/ui/progress-bar";
import { sentence } from "@/ui/sentence";
import { toast } from "@/ui/toast";
import { type Row, refreshRows, rowsOf, type Table } from "./data";
import { shownText } from "./value";

interface Props {
	table: Table;
	/** The selected rows. */
	rows: Row[];
	onClear: () => void;
}

/** SelectionBar has the actions on the selected rows. */
export function SelectionBar({ table, rows, onClear }: Props) {
	const [deleting, setDeleting] = useState<Row[]>();
	return (
		<>
			{rows.length > 0 && (
				<div className="sticky bottom-4 z-20 flex justify-center">
					<section
						aria-label="Selected rows"
						className="flex max-w-full flex-wrap items-center gap-2 rounded-12 border bg-surface py-2 pr-2 pl-4 shadow-lift"
					>
						<span role="status" className="mr-2 font-medium whitespace-nowrap tabular">
							{rows.length} selected
						</span>
						<Button icon={TrashIcon} onClick={() => setDeleting(rows)}>
							Delete {rows.length}
						</Button>
						<Button kind="quiet" onClick={onClear}>
							Clear selection
						</Button>
					</section>
				</div>
			)}
			{deleting && (
				<DeleteRowsDialog table={table} rows={deleting} onClear={onClear} onClose={() => setDeleting(undefined)} />
			)}
		</>
	);
}

/** DeleteRowsDialog deletes rows with one call each, and lists those that were not deleted. */
function DeleteRowsDialog({ table, rows, onClear, onClose }: Props & { onClose: () => void }) {
	const [progress, setProgress] = useState<Progress<Row>>();
	const [over, setOver] = useState(false);
	const stop = useRef<AbortController>(null);
	const client = useQueryClient();
	const busy = progress !== undefined && !over;
	const start = async () => {
		const abort = new AbortController();
		stop.current = abort;
		setProgress({ done: 0, failed: [] });
		const remove = (row: Row) =>
			api.DELETE("/v1/tables/{id}/rows/{row_id}", { params: { path: { id: table.id, row_id: row.id } } });
		const { done, failed } = await callAll(rows, remove, setProgress, abort.signal);
		onClear();
		void refreshRows(client, table.id);
		if (failed.length > 0) return setOver(true);
		toast.done(`${rowsOf(done)} deleted`);
		onClose();
	};
	return (
		<Dialog
			open
			guarded={busy}
			onOpenChange={(open) => !open && !busy && onClose()}
			title={over ? "Some rows were not deleted" : `Delete ${rowsOf(rows.length)}?`}
			width="small"
			actions={
				over ? (
					<Button kind="primary" onClick={onClose}>
						Close
					</Button>
				) : busy ? (
					<Button onClick={() => stop.current?.abort()}>Stop</Button>
				) : (
					<>
						<Button onClick={onClose}>Cancel</Button>
						<Button kind="danger" onClick={() => void start()}>
							Delete {rowsOf(rows.length)}
						</Button>
					</>
				)
			}
		>
			{!progress && <p className="text-muted">All of their values are lost and cannot be recovered.</p>}
			{progress && <ProgressBar value={progress.done} max={rows.length} label="Deleting" />}
			{progress && progress.failed.length > 0 && (
				<ul className="flex max-h-60 flex-col overflow-y-auto rounded-8 border">
					{progress.failed.map(({ item, error }) => (
						<li key={item.id} className="border-b px-3 py-2 last:border-b-0">
							<p className="truncate font-medium">{nameOf(table, item)}</p>
							<p className="break-words">{sentence(error.message)}</p>
						</li>
					))}
				</ul>
			)}
		</Dialog>
	);
}

/** nameOf returns the key of a row, or its id if the table has no key. */
function nameOf(table: Table, row: Row): string {
	const key = table.columns.find(({ name }) => name === table.key);
	return key ? shownText(row.values.get(key.name), key.type) : row.id;
}
