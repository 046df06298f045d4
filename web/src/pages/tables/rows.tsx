import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { type ApiError, toApiError } from "@/api/error";
import type { Raw } from "@/api/raw-json";
import { useMay } from "@/api/session";
import { useShortcut } from "@/shell/keys";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { FilterIcon, PlusIcon, RetryIcon, TableIcon } from "@/ui/icons";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import type { OpenDialog } from "./actions";
import { pageSize, type Query, refreshRows, type Table, useRows } from "./data";
import { SelectionBar } from "./delete-rows";
import { FilterPanel } from "./filter-panel";
import { Grid } from "./grid";
import { Pager } from "./pager";

const none: ReadonlySet<string> = new Set();

export interface RowsProps {
	table: Table;
	filter: Raw | undefined;
	sort: string | undefined;
	onChange: (patch: { filter?: Raw; sort?: string }) => void;
	onOpen: (dialog: OpenDialog) => void;
}

/** Rows shows the rows of a table, one page at a time. */
export function Rows({ table, filter, sort, onChange, onOpen }: RowsProps) {
	const write = useMay("write");
	const client = useQueryClient();
	const [filtering, setFiltering] = useState(filter !== undefined);
	const [picked, setPicked] = useState(none);
	const { cursor, number, previous, next } = usePaging(`${filter} ${sort}`);
	const query: Query = { filter, sort, cursor };
	const page = useRows(table.id, query);
	const rows = page.data?.rows ?? [];
	const chosen = useMemo(() => page.data?.rows.filter(({ id }) => picked.has(id)) ?? [], [page.data, picked]);
	const error = page.error ? toApiError(page.error) : undefined;
	const rejected = error?.fields.some(({ pointer }) => pointer.startsWith("/filter"));
	const partial = filter !== undefined || sort !== undefined || cursor !== undefined || page.data?.next != null;
	const add = () => write && onOpen({ what: "row", query: partial ? query : undefined });
	useShortcut("N", "New row", add, "Table");
	return (
		<div className="flex min-w-0 flex-col gap-3">
			<div className="flex flex-wrap items-center gap-2">
				<Button icon={FilterIcon} aria-expanded={filtering} onClick={() => setFiltering(!filtering)}>
					{filter === undefined ? "Filter" : "Filtered"}
				</Button>
				<IconButton icon={RetryIcon} label="Reload rows" onClick={() => void refreshRows(client, table.id)} />
				<span className="flex-1" />
				{write && (
					<Button kind="primary" icon={PlusIcon} onClick={add}>
						New row
					</Button>
				)}
			</div>
			{filtering && (
				<FilterPanel columns={table.columns} filter={filter} error={error} onApply={(filter) => onChange({ filter })} />
			)}
			<Card>
				<div
					aria-busy={page.isFetching}
					className={cx("max-h-[70dvh] overflow-auto", page.isPlaceholderData && "opacity-60")}
				>
					<Grid
						table={table}
						rows={error ? [] : rows}
						sort={sort}
						onSort={(sort) => onChange({ sort })}
						picked={picked}
						onPick={write ? setPicked : undefined}
						onColumn={(what, column) => onOpen({ what: `${what} column`, column })}
						onAddColumn={() => onOpen({ what: "add column" })}
					/>
					{page.isPending ? (
						<SkeletonRows />
					) : error ? (
						<Failed error={error} rejected={rejected} onRetry={() => void page.refetch()} />
					) : (
						rows.length === 0 && (
							<NoRows
								filtered={filter !== undefined}
								onPrevious={previous}
								onClear={() => onChange({ filter: undefined })}
								actions={
									write && (
										<>
											<Button onClick={() => onOpen({ what: "import" })}>Import CSV</Button>
											<Button kind="primary" icon={PlusIcon} onClick={add}>
												New row
											</Button>
										</>
									)
								}
							/>
						)
					)}
				</div>
				<Pager
					first={number * pageSize + 1}
					count={error ? 0 : rows.length}
					total={filter === undefined ? table.rows : undefined}
					onPrevious={previous}
					onNext={page.data?.next && !page.isPlaceholderData ? () => next(page.data.next ?? "") : undefined}
				/>
			</Card>
			{write && <SelectionBar table={table} rows={chosen} onClear={() => setPicked(none)} />}
		</div>
	);
}

/** usePaging keeps the cursors of the pages up to the current one. It starts again if what is listed changes. */
function usePaging(listed: string) {
	const [state, setState] = useState({ listed, cursors: [] as string[] });
	const cursors = state.listed === listed ? state.cursors : [];
	return {
		cursor: cursors.at(-1),
		number: cursors.length,
		previous: cursors.length > 0 ? () => setState({ listed, cursors: cursors.slice(0, -1) }) : undefined,
		next: (cursor: string) => setState({ listed, cursors: [...cursors, cursor] }),
	};
}

function Failed({ error, rejected, onRetry }: { error: ApiError; rejected?: boolean; onRetry: () => void }) {
	if (!rejected) return <ErrorState error={error} onRetry={onRetry} />;
	return (
		<EmptyState icon={FilterIcon} title="The filter has a mistake">
			Correct it above to see rows.
		</EmptyState>
	);
}

interface NoRowsProps {
	filtered: boolean;
	/** Set if there are pages before this one, whose rows were deleted. */
	onPrevious?: () => void;
	onClear: () => void;
	actions: ReactNode;
}

function NoRows({ filtered, onPrevious, onClear, actions }: NoRowsProps) {
	if (onPrevious)
		return (
			<EmptyState icon={TableIcon} title="No more rows" actions={<Button onClick={onPrevious}>Previous page</Button>} />
		);
	if (filtered)
		return (
			<EmptyState
				icon={FilterIcon}
				title="No rows match this filter"
				actions={<Button onClick={onClear}>Clear filter</Button>}
			/>
		);
	return (
		<EmptyState icon={TableIcon} title="No rows yet" actions={actions}>
			Add rows here, import them from a CSV file, or let steps and API calls write them.
		</EmptyState>
	);
}
