import { describe, expect, it, vi } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { ColumnDialog, DropColumnDialog } from "./column-dialog";
import type { Table } from "./data";
import { RowDialog } from "./row-dialog";
import type { Column } from "./value";

const key = { id: "c1", name: "email", type: "text", required: true, indexed: false } as Column;
const amount = { id: "c2", name: "amount", type: "number", required: false, indexed: false } as Column;
const table = { id: "tbl_1", name: "customers", key: "email", columns: [key, amount], rows: 12, bytes: 900 } as Table;

const close = () => undefined;

describe("adding a row", () => {
	it("shows errors at the columns", async () => {
		const problem = { pointer: "/values/email", message: "is the key of another row" };
		const { screen, user, calls } = await renderPage(<RowDialog table={table} query={undefined} onClose={close} />, {
			answers: { "POST /v1/tables/tbl_1/rows": errorResponse(409, "row_exists", "it exists", [problem]) },
		});
		await user.type(await screen.findByLabelText(/^email/), "ada");
		await user.type(screen.getByLabelText("amount"), "12345678901234567890");
		await user.click(screen.getByRole("button", { name: "Add row" }));
		await screen.findByText("Is the key of another row.");
		expect(calls[0]?.text).toBe('{"values":{"email":"ada","amount":12345678901234567890}}');
	});
});

describe("a column", () => {
	it("is changed by sending what differs", async () => {
		const onRenamed = vi.fn();
		const { screen, user, calls } = await renderPage(
			<ColumnDialog table={table} column={amount} onClose={close} onRenamed={onRenamed} />,
			{ answers: { "PATCH /v1/tables/tbl_1": table } },
		);
		const name = await screen.findByLabelText(/^Name/);
		await user.clear(name);
		await user.type(name, "total");
		await user.click(screen.getByLabelText("Indexed"));
		await user.click(screen.getByRole("button", { name: "Save column" }));
		await vi.waitFor(() => expect(onRenamed).toHaveBeenCalledWith("amount", "total"));
		expect(calls[0]?.body).toEqual({ columns: { amount: { name: "total", indexed: true } } });
	});

	it("shows why its type cannot change", async () => {
		const problem = { pointer: "/columns/amount", message: "the value of the row row_1 cannot be kept" };
		const { screen, user } = await renderPage(<ColumnDialog table={table} column={amount} onClose={close} />, {
			answers: { "PATCH /v1/tables/tbl_1": errorResponse(400, "invalid_request", problem.message, [problem]) },
		});
		await user.selectOptions(await screen.findByLabelText("Type"), "boolean");
		await user.click(screen.getByRole("button", { name: "Save column" }));
		await screen.findAllByText(/cannot be kept/);
	});

	it("that is the key stays required", async () => {
		const { screen } = await renderPage(<ColumnDialog table={table} column={key} onClose={close} />);
		expect((await screen.findByLabelText<HTMLInputElement>("Required")).disabled).toBe(true);
	});

	it("is dropped after a warning", async () => {
		const onDropped = vi.fn();
		const { screen, user, calls } = await renderPage(
			<DropColumnDialog table={table} column={amount} onClose={close} onDropped={onDropped} />,
			{ answers: { "PATCH /v1/tables/tbl_1": table } },
		);
		await screen.findByText("12 rows");
		await user.click(screen.getByRole("button", { name: "Drop column" }));
		await vi.waitFor(() => expect(onDropped).toHaveBeenCalledWith("amount"));
		expect(calls[0]?.body).toEqual({ columns: { amount: null } });
	});
});
