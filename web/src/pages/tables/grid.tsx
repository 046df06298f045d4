import { type KeyboardEvent, type MouseEvent, memo, useCallback, useRef, useState } from "react";
import { FilePreview } from "@/shared/files/preview";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { Checkbox } from "@/ui/field";
import { PlusIcon } from "@/ui/icons";
import { fullTime } from "@/ui/time";
import { CellEditor, CellValue } from "./cell";
import type { Row, Table } from "./data";
import { type Place, placeAfter } from "./grid-keys";
import { HeaderCell, type Sort } from "./header-cell";
import { type Column, type FileRef, fileIn, needsDialog } from "./value";
import { ValueDialog } from "./value-dialog";

export interface GridProps {
	table: Table;
	rows: Row[];
	sort: Sort;
	onSort: (sort: Sort) => void;
	picked: ReadonlySet<string>;
	/** Changes the selection; omitted for users who may not change rows. */
	onPick?: (change: (picked: ReadonlySet<string>) => ReadonlySet<string>) => void;
	onColumn: (what: "change" | "drop", column: Column) => void;
	onAddColumn: () => void;
}

/**
 * Grid shows a page of rows. Arrow keys move between cells, Enter edits one, the space bar
 * previews a file. Only the current cell is a tab stop.
 */
export function Grid({ table, rows, sort, onSort, picked, onPick, onColumn, onAddColumn }: GridProps) {
	const [current, setCurrent] = useState<Place>({ row: 0, col: 0 });
	const [editing, setEditing] = useState<Editing>();
	const [previewed, setPreviewed] = useState<FileRef>();
	const root = useRef<HTMLTableElement>(null);
	const clicked = useRef<Element>(null);
	const { columns } = table;
	const lead = onPick ? 1 : 0;
	const size = { rows: rows.length, cols: columns.length + lead };
	const active = { row: Math.min(current.row, size.rows - 1), col: Math.min(current.col, size.cols - 1) };

	const focus = ({ row, col }: Place) =>
		root.current?.querySelector<HTMLElement>(`[data-row="${row}"][data-col="${col}"]`)?.focus();
	const fileAt = ({ row, col }: Place) => {
		const column = columns[col - lead];
		return column && fileIn(rows[row]?.values.get(column.name), column.type);
	};
	const edit = ({ row: at, col }: Place) => {
		const row = rows[at];
		const column = columns[col - lead];
		if (!row || !column) return;
		const file = fileAt({ row: at, col });
		if (file && !onPick) return setPreviewed(file);
		const dialog = !onPick || needsDialog(row.values.get(column.name), column.type);
		setEditing({ row: row.id, column: column.id, dialog });
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const place = placeOf(event.target);
		if (!place || event.altKey || event.metaKey) return;
		const next = placeAfter(event.key, event.ctrlKey, place, size);
		if (next) {
			event.preventDefault();
			focus(next);
		} else if (event.key === "Enter" || event.key === "F2") {
			event.preventDefault();
			edit(place);
		} else if (event.key === " " && fileAt(place)) {
			event.preventDefault();
			setPreviewed(fileAt(place));
		}
	};
	// A second click on a cell edits it, also on touch screens.
	const onClick = (event: MouseEvent) => {
		const place = placeOf(event.target);
		if (place && clicked.current === cellOf(event.target)) edit(place);
	};
	const close = useCallback((refocus: boolean) => {
		setEditing(undefined);
		// The cell is rendered with the next commit.
		if (refocus)
			requestAnimationFrame(() => root.current?.querySelector<HTMLElement>('[tabindex="0"][data-row]')?.focus());
	}, []);
	const closePreview = () => {
		setPreviewed(undefined);
		close(true);
	};
	const pick = useCallback(
		(id: string, on: boolean) =>
			onPick?.((old) => {
				const next = new Set(old);
				if (on) next.add(id);
				else next.delete(id);
				return next;
			}),
		[onPick],
	);
	const opened = editing?.dialog ? rows.find(({ id }) => id === editing.row) : undefined;
	const openedColumn = columns.find(({ id }) => id === editing?.column);
	const all = rows.length > 0 && rows.every(({ id }) => picked.has(id));
	return (
		<>
			<table
				ref={root}
				// biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a table is the basis of a grid in ARIA
				role="grid"
				aria-label={`Rows of ${table.name}`}
				aria-readonly={!onPick || undefined}
				onKeyDown={onKeyDown}
				onPointerDown={(event) => {
					clicked.current = document.activeElement === cellOf(event.target) ? document.activeElement : null;
				}}
				// A double click edits and does not select a word.
				onMouseDown={(event) => event.detail > 1 && placeOf(event.target) && event.preventDefault()}
				onClick={onClick}
				onFocus={(event) => {
					const cell = cellOf(event.target);
					if (cell) setCurrent(placeIn(cell));
				}}
				className="w-max min-w-full border-separate border-spacing-0 text-left"
			>
				<thead>
					<tr>
						{onPick && (
							<th scope="col" className="sticky top-0 z-10 w-10 border-r border-b bg-surface px-3">
								<span className="flex">
									<Checkbox
										aria-label="Select all rows shown"
										checked={all}
										onChange={() => onPick(() => new Set(all ? [] : rows.map(({ id }) => id)))}
									/>
								</span>
							</th>
						)}
						{columns.map((column) => (
							<HeaderCell
								key={column.id}
								column={column}
								isKey={column.name === table.key}
								sort={sort}
								onSort={onSort}
								onColumn={onPick && onColumn}
							/>
						))}
						<th
							scope="col"
							className="sticky top-0 z-10 w-full border-b bg-surface px-3 text-left text-12 font-normal text-muted"
						>
							<span className="flex items-center gap-2 whitespace-nowrap">
								{onPick && (
									<IconButton small icon={PlusIcon} label="Add column" className="-ml-1.5" onClick={onAddColumn} />
								)}
								Updated
							</span>
						</th>
					</tr>
				</thead>
				<tbody>
					{rows.map((row, at) => (
						<GridRow
							key={row.id}
							table={table}
							row={row}
							at={at}
							activeCol={at === active.row ? active.col : undefined}
							editing={editing?.row === row.id && !editing.dialog ? editing.column : undefined}
							picked={picked.has(row.id)}
							onPick={onPick && pick}
							onClose={close}
							onPreview={setPreviewed}
						/>
					))}
				</tbody>
			</table>
			{previewed && <FilePreview id={previewed.$file} name={previewed.name} onClose={closePreview} />}
			{opened && openedColumn && (
				<ValueDialog table={table} row={opened} column={openedColumn} readOnly={!onPick} onClose={() => close(true)} />
			)}
		</>
	);
}

/** Editing is the value that is edited, in its cell or in a dialog. */
interface Editing {
	row: string;
	column: string;
	dialog: boolean;
}

const cellOf = (target: EventTarget) => (target as Element).closest<HTMLElement>("[data-row]");

const placeIn = ({ dataset: { row, col } }: HTMLElement): Place => ({ row: Number(row), col: Number(col) });

/** placeOf returns the place of a cell, unless the event is about the editor or the button in it. */
function placeOf(target: EventTarget): Place | undefined {
	const cell = cellOf(target);
	if (!cell || (target !== cell && (target as Element).closest("input, select, button"))) return undefined;
	return placeIn(cell);
}

interface GridRowProps {
	table: Table;
	row: Row;
	at: number;
	activeCol: number | undefined;
	/** The id of the column that is edited. */
	editing: string | undefined;
	picked: boolean;
	onPick?: (id: string, on: boolean) => void;
	onClose: (refocus: boolean) => void;
	onPreview: (file: FileRef) => void;
}

/** GridRow is rendered again only if something in it changes: a table may have 50 columns. */
const GridRow = memo(function GridRow(props: GridRowProps) {
	const { table, row, at, activeCol, editing, picked, onPick, onClose, onPreview } = props;
	const lead = onPick ? 1 : 0;
	const tabStop = (col: number) => (activeCol === col ? 0 : -1);
	return (
		<tr className={cx("last:*:border-b-0", picked ? "bg-accent-soft" : "hover:bg-sunken/50")}>
			{onPick && (
				<td className="border-r border-b px-3">
					<span className="flex">
						<Checkbox
							aria-label={`Select row ${at + 1}`}
							data-row={at}
							data-col={0}
							tabIndex={tabStop(0)}
							checked={picked}
							onChange={(event) => onPick(row.id, event.target.checked)}
						/>
					</span>
				</td>
			)}
			{table.columns.map((column, index) => (
				<td
					key={column.id}
					// biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a cell of a grid
					role="gridcell"
					data-row={at}
					data-col={index + lead}
					tabIndex={tabStop(index + lead)}
					className={cx(
						"h-9 max-w-80 min-w-32 scroll-mt-12 border-r border-b px-3 focus:outline-2 focus:-outline-offset-2 focus:outline-accent",
						column.type === "number" && "text-right",
					)}
				>
					{editing === column.id ? (
						<CellEditor table={table} row={row} column={column} onClose={onClose} />
					) : (
						<CellValue raw={row.values.get(column.name)} column={column} onPreview={onPreview} />
					)}
				</td>
			))}
			<td className="border-b px-3 text-12 whitespace-nowrap text-muted">{fullTime(row.updated_at)}</td>
		</tr>
	);
});
