import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { api, got } from "@/api/client";
import { parseCsv, type Separator, separatorOf } from "@/shared/files/csv";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { Dialog } from "@/ui/dialog";
import { FileDrop } from "@/ui/file-drop";
import { formatBytes, formatNumber } from "@/ui/format";
import { ProgressBar } from "@/ui/progress-bar";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { typeName } from "./columns";
import { refreshRows, rowsOf, type Table } from "./data";
import { rowsPerRequest, type Split, splitCsv } from "./import-parts";
import { ImportResult } from "./import-result";
import { importParts } from "./import-send";

/** How much of a file is read for the preview, and how many of its rows are shown. */
const previewBytes = 64 << 10;
const previewRows = 5;

interface Preview {
	file: File;
	header: string[];
	rows: string[][];
	separator: Separator;
}

async function preview(file: File): Promise<Preview> {
	const text = await file.slice(0, previewBytes).text();
	const separator = separatorOf(text);
	const [header = [], ...rows] = parseCsv(text, 1 + previewRows, separator);
	// The last line that was read may be incomplete.
	const complete = file.size > previewBytes && rows.length < previewRows ? rows.slice(0, -1) : rows;
	return { file, header, rows: complete, separator };
}

/** read previews a file and splits it into the parts that are imported. */
async function read(client: QueryClient, table: Table, file: File): Promise<Preview & { split: Split }> {
	const { limits } = await client.fetchQuery({
		queryKey: ["usage", 1],
		queryFn: ({ signal }) => got(api.GET("/v1/usage", { params: { query: { days: 1 } }, signal })),
		staleTime: 60_000,
	});
	const shown = await preview(file);
	const limit = { rows: rowsPerRequest(table), bytes: limits.request_body_bytes };
	return { ...shown, split: await splitCsv(file, limit, shown.separator) };
}

/**
 * ImportDialog imports rows from a CSV file. If one request can import them, all are imported
 * or none; otherwise they are imported in parts.
 */
export function ImportDialog({ table, onClose }: { table: Table; onClose: () => void }) {
	const client = useQueryClient();
	const [done, setDone] = useState(0);
	const stop = useRef(new AbortController());
	const [stopping, setStopping] = useState(false);
	// No further part is sent once the page is left.
	useEffect(() => () => stop.current.abort(), []);
	const reading = useMutation({
		meta: { quiet: true },
		mutationFn: (file: File) => read(client, table, file),
		onMutate: () => importing.reset(),
	});
	const importing = useMutation({
		meta: { quiet: true },
		mutationFn: (split: Split) => {
			stop.current = new AbortController();
			setStopping(false);
			setDone(0);
			return importParts(table.id, split, stop.current.signal, setDone);
		},
		onSuccess: async ({ rows, created, updated, failed }, split) => {
			await refreshRows(client, table.id);
			if (failed || rows < split.rows) return;
			toast.done(`Imported: ${rowsOf(created)} added, ${formatNumber(updated)} updated`);
			onClose();
		},
	});
	const shown = reading.data;
	const inParts = shown !== undefined && shown.split.parts.length > 1;
	const busy = importing.isPending;
	const result = importing.data;
	// Without a key, the rows that were imported would be added once more.
	const again = result === undefined || result.rows === 0 || table.key !== null;
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Import rows into “${table.name}”`}
			description={
				table.key
					? `From a CSV file whose first line names columns. Rows whose ${table.key} exists are updated, others are added.`
					: "From a CSV file whose first line names columns. All of its rows are added."
			}
			width="large"
			guarded
			locked={busy && inParts}
			onSubmit={() => shown && !busy && importing.mutate(shown.split)}
			actions={
				<>
					{busy && inParts ? (
						<Button
							busy={stopping}
							onClick={() => {
								stop.current.abort();
								setStopping(true);
							}}
						>
							Stop
						</Button>
					) : (
						<Button onClick={onClose}>{result?.rows ? "Close" : "Cancel"}</Button>
					)}
					<Button type="submit" kind="primary" busy={busy || reading.isPending} disabled={!shown || !again}>
						Import
					</Button>
				</>
			}
		>
			{!(busy && inParts) && (
				<FileDrop
					accept=".csv,text/csv"
					name={shown && `${shown.file.name} (${formatBytes(shown.file.size)})`}
					onFiles={([file]) => reading.mutate(file)}
				/>
			)}
			{shown && <PreviewTable table={table} preview={shown} />}
			{busy && inParts && <ProgressBar value={done} max={shown.split.rows} label="Importing" unit="rows imported" />}
			{reading.error && <ErrorNote error={reading.error} />}
			{shown && result && <ImportResult table={table} split={shown.split} imported={result} />}
			<p className="text-12 text-muted">
				An empty field is null. Times are written as 2026-03-01T12:00:00Z, booleans as true and false.{" "}
				{inParts
					? `The ${formatNumber(shown.split.rows)} rows are imported in ${shown.split.parts.length} parts. If a value does not fit its column, its part and those after it are not imported.`
					: "If a value does not fit its column, nothing is imported."}
			</p>
		</Dialog>
	);
}

function PreviewTable({ table, preview: { header, rows } }: { table: Table; preview: Preview }) {
	const missing = table.columns.filter(({ name, required }) => required && !header.includes(name));
	return (
		<div className="flex flex-col gap-2">
			<section
				aria-label="Preview"
				// biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
				tabIndex={0}
				className="overflow-x-auto rounded-8 border"
			>
				<table aria-label="First rows of the file" className="w-full border-collapse text-left">
					<thead>
						<tr>
							{header.map((name, at) => {
								const column = table.columns.find((one) => one.name === name);
								return (
									// biome-ignore lint/suspicious/noArrayIndexKey: the fields of a line have no other identity
									<th key={at} scope="col" className="border-b px-3 py-2 font-medium whitespace-nowrap">
										<span className="mr-2">{name}</span>
										{column ? <Badge>{typeName(column.type)}</Badge> : <Badge tone="bad">No such column</Badge>}
									</th>
								);
							})}
						</tr>
					</thead>
					<tbody>
						{rows.map((fields, line) => (
							// biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
							<tr key={line} className="border-b last:border-b-0">
								{fields.map((field, at) => (
									<td
										// biome-ignore lint/suspicious/noArrayIndexKey: the fields of a line have no other identity
										key={at}
										className={cx("max-w-60 truncate px-3 py-1.5", field === "" && "text-muted italic")}
									>
										{field === "" ? "null" : field.slice(0, 200)}
									</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			{missing.length > 0 && (
				<p className="text-failed">
					Required, but not in the file: {missing.map(({ name }) => name).join(", ")}. Add{" "}
					{missing.length === 1 ? "it" : "them"} to the first line.
				</p>
			)}
		</div>
	);
}
