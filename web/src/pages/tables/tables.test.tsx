import { within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import type { Scope } from "@/api/session";
import { type Call, errorResponse, renderPage } from "@/test/render";
import { CreateDialog } from "./create-dialog";
import type { Table } from "./data";
import Tables from "./page";
import { Rows } from "./rows";

const column = (id: string, name: string, type: string, more: object = {}) => ({
	id,
	name,
	type,
	required: false,
	indexed: false,
	...more,
});

const table = {
	id: "tbl_1",
	name: "customers",
	key: "email",
	columns: [
		column("c1", "email", "text", { required: true }),
		column("c2", "amount", "number"),
		column("c3", "paid", "boolean"),
		column("c4", "extra", "json"),
	],
	rows: 1240,
	bytes: 93112,
	updated_at: "2026-11-15T10:20:00.250Z",
} as Table;

const row = (id: string, values: string) =>
	`{"id":"${id}","values":${values},"created_at":"2026-11-15T10:20:00.250Z","updated_at":"2026-11-15T10:20:00.250Z"}`;

const big = "12345678901234567890.123";
const ada = row("row_1", `{"email":"ada@example.com","amount":${big},"paid":true,"extra":{"n":${big}}}`);
const bob = row("row_2", '{"email":"bob@example.com","amount":null,"paid":null,"extra":null}');

const json = (text: string) => new Response(text, { headers: { "Content-Type": "application/json" } });
const pageOf = (rows: string[], next: string | null = null) =>
	json(`{"data":[${rows.join(",")}],"next_cursor":${JSON.stringify(next)}}`);

async function drawRows(answers: object = {}, scopes?: Scope[]) {
	const onChange = vi.fn();
	const drawn = await renderPage(
		<Rows table={table} filter={undefined} sort={undefined} onChange={onChange} onOpen={() => undefined} />,
		{ answers: { "GET /v1/tables/tbl_1/rows": pageOf([ada, bob]), ...answers }, scopes },
	);
	return { ...drawn, onChange };
}

describe("the tables", () => {
	it("are listed with their columns and size, and say what is lost when they are deleted", async () => {
		const { screen, user, calls } = await renderPage(<Tables />, {
			answers: {
				"GET /v1/tables": { data: [table], next_cursor: null },
				"DELETE /v1/tables/tbl_1": undefined,
			},
		});
		const line = await screen.findByRole("row", { name: /customers/ });
		for (const text of ["email, amount, paid, extra", "1,240", "90.9 KiB"]) expect(line.textContent).toContain(text);
		await user.click(screen.getByRole("button", { name: "Delete customers" }));
		const dialog = await screen.findByRole("dialog", { name: "Delete “customers”?" });
		within(dialog).getByText("1,240 rows (90.9 KiB)");
		await user.click(within(dialog).getByRole("button", { name: "Delete table" }));
		await vi.waitFor(() => expect(calls.some(({ method }) => method === "DELETE")).toBe(true));
	});

	it("cannot be changed with read access", async () => {
		const { screen } = await renderPage(<Tables />, {
			answers: { "GET /v1/tables": { data: [table], next_cursor: null } },
			scopes: ["read"],
			at: "/tables?new=table",
		});
		await screen.findByRole("link", { name: "customers" });
		expect(screen.queryByRole("button", { name: /New|Delete/ })).toBeNull();
		expect(screen.queryByRole("dialog")).toBeNull();
	});
});

describe("creating a table", () => {
	it("sends the columns and the key, and shows errors at their columns", async () => {
		const problem = { pointer: "/columns/1/name", message: "is the name of another column" };
		const { screen, user, calls } = await renderPage(<CreateDialog example={false} onClose={() => undefined} />, {
			answers: { "POST /v1/tables": errorResponse(400, "invalid_request", "invalid", [problem]) },
		});
		await user.type(await screen.findByLabelText(/^Name/), "orders");
		await user.type(screen.getByLabelText("Column 1: name"), "id");
		await user.click(screen.getByRole("button", { name: "Add column" }));
		await user.type(screen.getByLabelText("Column 2: name"), "id");
		await user.selectOptions(screen.getByLabelText("Column 2: type"), "json");
		await user.selectOptions(screen.getByLabelText("Key"), "id");
		await user.click(screen.getByRole("button", { name: "Create table" }));
		const second = screen.getByRole("group", { name: "Column 2" });
		await within(second).findByText("Is the name of another column.");
		expect(calls[0]?.body).toEqual({
			name: "orders",
			key: "id",
			columns: [
				{ name: "id", type: "text", required: false, indexed: false },
				{ name: "id", type: "json", required: false, indexed: false },
			],
		});
	});

	it("keeps the key when its column is renamed", async () => {
		const { screen, user } = await renderPage(<CreateDialog example onClose={() => undefined} />);
		await user.type(await screen.findByLabelText("Column 1: name"), "2");
		expect(screen.getByLabelText<HTMLSelectElement>("Key").value).toBe("email2");
	});
});

describe("the rows of a table", () => {
	it("show numbers with all of their digits", async () => {
		const { screen } = await drawRows();
		await screen.findByRole("gridcell", { name: big });
		screen.getByRole("gridcell", { name: `{"n":${big}}` });
		expect(screen.getAllByRole("gridcell", { name: "null" })).toHaveLength(3);
		screen.getByText("Rows 1–2 of 1,240");
	});

	it("are edited in their cells, with all digits", async () => {
		const { screen, user, calls } = await drawRows({
			"PATCH /v1/tables/tbl_1/rows/row_1": json(row("row_1", `{"email":"ada@example.com","amount":${big}9}`)),
			"GET /v1/tables/tbl_1": table,
		});
		await user.dblClick(await screen.findByRole("gridcell", { name: big }));
		const field = screen.getByRole("textbox", { name: "amount" });
		await user.type(field, `${big}9{Enter}`, { initialSelectionStart: 0, initialSelectionEnd: 100 });
		await screen.findByRole("gridcell", { name: `${big}9` });
		const patch = calls.find(({ method }) => method === "PATCH");
		expect(patch?.text).toBe(`{"values":{"amount":${big}9}}`);
	});

	it("show the error of the API at the cell, until the value is corrected or discarded", async () => {
		const problem = { pointer: "/values/amount", message: "must be a number" };
		const { screen, user, calls } = await drawRows({
			"PATCH /v1/tables/tbl_1/rows/row_1": errorResponse(400, "invalid_request", "invalid", [problem]),
		});
		const cell = await screen.findByRole("gridcell", { name: big });
		await user.dblClick(cell);
		await user.clear(screen.getByRole("textbox", { name: "amount" }));
		await user.type(screen.getByRole("textbox", { name: "amount" }), "x{Enter}");
		await screen.findByText("Must be a number.");
		expect(screen.getByRole("textbox", { name: "amount" }).getAttribute("aria-invalid")).toBe("true");
		// Leaving the cell does not send the same value again.
		await user.tab();
		expect(calls.filter(({ method }) => method === "PATCH")).toHaveLength(1);
		await user.click(screen.getByRole("textbox", { name: "amount" }));
		await user.keyboard("{Escape}");
		await screen.findByRole("gridcell", { name: big });
	});

	it("are reached with the arrow keys", async () => {
		const { screen, user } = await drawRows();
		await screen.findByRole("gridcell", { name: big });
		screen.getByRole("checkbox", { name: "Select row 1" }).focus();
		await user.keyboard("{ArrowDown}{ArrowRight}");
		expect(document.activeElement?.textContent).toBe("bob@example.com");
		await user.keyboard("{End}{ArrowUp}");
		expect(document.activeElement?.textContent).toBe(`{"n":${big}}`);
	});

	it("open long values in a dialog", async () => {
		const { screen, user } = await drawRows();
		await user.dblClick(await screen.findByRole("gridcell", { name: `{"n":${big}}` }));
		await screen.findByRole("dialog", { name: "Edit “extra”" });
		await user.click(screen.getByRole("button", { name: "Cancel" }));
		await vi.waitFor(() => expect(document.activeElement?.textContent).toBe(`{"n":${big}}`));
	});

	it.each([
		["with a click", undefined],
		["by people who can only read", ["read"] as Scope[]],
	])("preview files %s", async (_, scopes) => {
		const photo = { $file: "file_1", name: "ada.txt", type: "text/plain", size: 5, sha256: "0" };
		const withFile = { ...table, columns: [column("c1", "photo", "file")] } as Table;
		const { screen, user } = await renderPage(
			<Rows table={withFile} filter={undefined} sort={undefined} onChange={vi.fn()} onOpen={vi.fn()} />,
			{
				answers: {
					"GET /v1/tables/tbl_1/rows": pageOf([row("row_1", `{"photo":${JSON.stringify(photo)}}`)]),
					"GET /v1/files/file_1": errorResponse(404, "file_not_found", "gone"),
				},
				scopes,
			},
		);
		await user.click(await screen.findByRole("button", { name: "Preview" }));
		await screen.findByRole("dialog", { name: "ada.txt" });
		await user.keyboard("{Escape}");
		screen.getByRole("gridcell", { name: /ada.txt/ }).focus();
		await user.keyboard(" ");
		await screen.findByRole("dialog", { name: "ada.txt" });
	});

	it("are read page by page", async () => {
		const { screen, user, calls } = await drawRows({
			"GET /v1/tables/tbl_1/rows": ({ query }: Call) => (query.get("cursor") ? pageOf([bob]) : pageOf([ada], "next")),
		});
		await screen.findByRole("gridcell", { name: "ada@example.com" });
		await user.click(screen.getByRole("button", { name: "Next" }));
		await screen.findByRole("gridcell", { name: "bob@example.com" });
		expect(screen.queryByRole("gridcell", { name: "ada@example.com" })).toBeNull();
		screen.getByText("Rows 51–51 of 1,240");
		await user.click(screen.getByRole("button", { name: "Previous" }));
		await screen.findByRole("gridcell", { name: "ada@example.com" });
		expect(calls.every(({ query }) => query.get("limit") === "50")).toBe(true);
	});

	it("are sorted by a click on a column", async () => {
		const { screen, user, onChange } = await drawRows();
		await user.click(await screen.findByRole("button", { name: "amount" }));
		expect(onChange).toHaveBeenCalledWith({ sort: "amount" });
		expect(screen.queryByRole("button", { name: "extra" })).toBeNull();
	});

	it("are filtered by conditions", async () => {
		const { screen, user, onChange } = await drawRows();
		await user.click(await screen.findByRole("button", { name: "Filter" }));
		await user.selectOptions(screen.getByLabelText("Condition 1: column"), "amount");
		await user.selectOptions(screen.getByLabelText("Condition 1: operator"), ">");
		await user.type(screen.getByLabelText("Condition 1: value"), `${big}{Enter}`);
		expect(onChange).toHaveBeenCalledWith({ filter: `{"and":[{"column":"amount","op":">","value":${big}}]}` });
	});

	it("are deleted together, and those that are not are listed with the reason", async () => {
		const { screen, user } = await drawRows({
			"DELETE /v1/tables/tbl_1/rows/row_1": undefined,
			"DELETE /v1/tables/tbl_1/rows/row_2": errorResponse(503, "read_only", "the server is read-only"),
		});
		await user.click(await screen.findByRole("checkbox", { name: "Select all rows shown" }));
		await user.click(screen.getByRole("button", { name: "Delete 2" }));
		await user.click(await screen.findByRole("button", { name: "Delete 2 rows" }));
		const dialog = await screen.findByRole("dialog", { name: "Some rows were not deleted" });
		within(dialog).getByText("bob@example.com");
		within(dialog).getByText("The server is read-only.");
	});

	it("cannot be changed with read access", async () => {
		const { screen, user } = await drawRows({}, ["read"]);
		await user.dblClick(await screen.findByRole("gridcell", { name: "ada@example.com" }));
		await screen.findByRole("dialog", { name: "email" });
		expect(screen.queryByRole("textbox")).toBeNull();
		expect(screen.queryByRole("checkbox")).toBeNull();
		expect(screen.queryByRole("button", { name: /New row|Add column|Actions/ })).toBeNull();
	});
});
