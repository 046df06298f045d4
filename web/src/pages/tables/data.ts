import { keepPreviousData, type QueryClient, useQuery } from "@tanstack/react-query";
import { api, got, type Schema } from "@/api/client";
import { items, members, object, type Raw, send } from "@/api/raw-json";
import { formatBytes, formatNumber } from "@/ui/format";

export type Table = Schema["Table"];

/** Row is a row whose values are the text of the response. */
export interface Row {
	id: string;
	values: ReadonlyMap<string, Raw>;
	updated_at: string;
}

export interface RowPage {
	rows: Row[];
	next: string | null;
}

/** Query says which rows to show. */
export interface Query {
	filter?: Raw;
	sort?: string;
	cursor?: string;
}

/** How many rows a page has. */
export const pageSize = 50;

export function useTable(id: string) {
	return useQuery({
		queryKey: ["tables", id],
		queryFn: ({ signal }) => got(api.GET("/v1/tables/{id}", { params: { path: { id } }, signal })),
	});
}

const rowsKey = (id: string) => ["tables", id, "rows"];

/** useRows reads one page of rows. */
export function useRows(id: string, query: Query) {
	return useQuery({
		queryKey: [...rowsKey(id), query],
		queryFn: async ({ signal }) => {
			const params = { path: { id }, query: { ...query, limit: pageSize } };
			return readPage(await got(api.GET("/v1/tables/{id}/rows", { params, signal, parseAs: "text" })));
		},
		placeholderData: keepPreviousData,
	});
}

function readPage(text: Raw): RowPage {
	const page = members(text);
	return {
		rows: items(page.get("data") ?? "[]").map(readRow),
		next: JSON.parse(page.get("next_cursor") ?? "null"),
	};
}

function readRow(text: Raw): Row {
	const row = members(text);
	const plain = (name: string): string => JSON.parse(row.get(name) ?? '""');
	return { id: plain("id"), values: members(row.get("values") ?? "{}"), updated_at: plain("updated_at") };
}

const rowBody = (values: Iterable<readonly [string, Raw]>) => send(object([["values", object(values)]]));

/** updateCell stores a value and shows the row as it is then. */
export async function updateCell(client: QueryClient, id: string, row: Row, column: string, raw: Raw): Promise<void> {
	const params = { path: { id, row_id: row.id } };
	const call = api.PATCH("/v1/tables/{id}/rows/{row_id}", { params, ...rowBody([[column, raw]]), parseAs: "text" });
	const updated = readRow(await got(call));
	// The row stays where it is until the page is loaded again, even if it now sorts elsewhere.
	changePages(client, id, (rows) => rows.map((one) => (one.id === row.id ? updated : one)));
	void refreshTable(client, id);
}

/**
 * addRow stores a row. If it may be on another page, it is shown first until the page is
 * loaded again.
 */
export async function addRow(
	client: QueryClient,
	id: string,
	values: Iterable<readonly [string, Raw]>,
	query: Query | undefined,
): Promise<void> {
	const params = { path: { id } };
	const added = readRow(await got(api.POST("/v1/tables/{id}/rows", { params, ...rowBody(values), parseAs: "text" })));
	if (query) {
		client.setQueryData<RowPage>([...rowsKey(id), query], (page) => page && { ...page, rows: [added, ...page.rows] });
		void refreshTable(client, id);
	} else void refreshRows(client, id);
}

function changePages(client: QueryClient, id: string, change: (rows: Row[]) => Row[]): void {
	client.setQueriesData<RowPage>({ queryKey: rowsKey(id) }, (page) => page && { ...page, rows: change(page.rows) });
}

/** refreshTable loads the columns and the number of rows again. */
export async function refreshTable(client: QueryClient, id: string): Promise<void> {
	await Promise.all([
		client.invalidateQueries({ queryKey: ["tables", id], exact: true }),
		client.invalidateQueries({ queryKey: ["tables", "list"] }),
	]);
}

/** refreshRows loads everything about a table again. */
export async function refreshRows(client: QueryClient, id: string): Promise<void> {
	await Promise.all([
		client.invalidateQueries({ queryKey: ["tables", id] }),
		client.invalidateQueries({ queryKey: ["tables", "list"] }),
	]);
}

export function rowsOf(count: number): string {
	return count === 1 ? "1 row" : `${formatNumber(count)} rows`;
}

/** contentOf says what a table holds: "1,240 rows (90.9 KiB)". */
export function contentOf({ rows, bytes }: Table): string {
	return rows === 0 ? "no rows" : `${rowsOf(rows)} (${formatBytes(bytes)})`;
}
