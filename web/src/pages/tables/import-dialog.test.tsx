import { within } from "@testing-library/react";
import { describe, expect, it, vi } from "vitest";
import { type Call, errorResponse, renderPage } from "@/test/render";
import type { Table } from "./data";
import { ImportDialog } from "./import-dialog";
import type { Column } from "./value";

const email = { id: "c1", name: "email", type: "text", required: true, indexed: false } as Column;
const amount = { id: "c2", name: "amount", type: "number", required: false, indexed: false } as Column;
const table = { id: "tbl_1", name: "customers", key: "email", columns: [email, amount], rows: 12, bytes: 900 } as Table;

/** choose opens the dialog and chooses a file. */
async function choose(text: string, answer: unknown, into = table) {
	const onClose = vi.fn();
	const drawn = await renderPage(<ImportDialog table={into} onClose={onClose} />, {
		answers: {
			"GET /v1/usage": { limits: { request_body_bytes: 1 << 20 } },
			"POST /v1/tables/tbl_1/import": answer,
		},
		toasts: true,
	});
	await drawn.screen.findByText(/From a CSV file/);
	const input = document.querySelector<HTMLInputElement>("input[type=file]");
	if (!input) throw new Error("no file input");
	await drawn.user.upload(input, new File([text], "customers.csv", { type: "text/csv" }));
	await drawn.screen.findByRole("table", { name: "First rows of the file" });
	const posts = () => drawn.calls.filter(({ method }) => method === "POST").map((call) => call.text);
	return { ...drawn, posts, onClose };
}

/** rejected returns the response to a file with a problem in a line. */
function rejected(line: number, message = "must be a number"): Response {
	const detail = { pointer: "/amount", message, line, column: 3 };
	return errorResponse(400, "invalid_request", `line ${line}, column amount: ${message}`, [detail]);
}

describe("a file that fits into a request", () => {
	it("is previewed and imported", async () => {
		const text = 'email,amount\n"a, b",1\nc,\n';
		const { screen, user, posts, onClose } = await choose(text, { created: 2, updated: 1 });
		const preview = await screen.findByRole("table", { name: "First rows of the file" });
		within(preview).getByRole("cell", { name: "a, b" });
		within(preview).getByRole("cell", { name: "null" });
		screen.getByText(/nothing is imported/);
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("Imported: 2 rows added, 1 updated");
		expect(posts()).toEqual([text]);
		expect(onClose).toHaveBeenCalled();
	});

	it("can be separated by semicolons", async () => {
		const text = "email;amount\na,b;1\n";
		const { screen, user, posts } = await choose(text, { created: 1, updated: 0 });
		const preview = await screen.findByRole("table", { name: "First rows of the file" });
		within(preview).getByRole("cell", { name: "a,b" });
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText(/^Imported: 1 row/);
		expect(posts()).toEqual([text]);
	});

	it("is rejected with the line and the column", async () => {
		const { screen, user } = await choose("amount,town\nx,Bern\n", rejected(2));
		await screen.findByText("No such column");
		screen.getByText(/Required, but not in the file: email/);
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("Line 2, column amount");
		screen.getByText("Must be a number.");
		screen.getByText("Nothing was imported.");
	});
});

describe("a larger file", () => {
	const header = "email,amount\n";
	const rows = Array.from({ length: 10_001 }, (_, at) => `user${at},${at}\n`);
	const file = header + rows.join("");

	it("is imported in parts", async () => {
		const { screen, user, posts, onClose } = await choose(file, ({ text }: Call) => ({
			created: text.split("\n").length - 2,
			updated: 0,
		}));
		screen.getByText(/The 10,001 rows are imported in 3 parts/);
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("Imported: 10,001 rows added, 0 updated");
		expect(posts()).toEqual([
			header + rows.slice(0, 5_000).join(""),
			header + rows.slice(5_000, 10_000).join(""),
			header + rows.slice(10_000).join(""),
		]);
		expect(onClose).toHaveBeenCalled();
	});

	/** second responds to the second request with the given response. */
	const second = (response: Response) => {
		let count = 0;
		return () => (++count === 2 ? response : { created: 4_999, updated: 1 });
	};

	it("whose second part is rejected says what was imported, and the line in the file", async () => {
		const { screen, user, posts, onClose } = await choose(file, second(rejected(7)));
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("Rows 1 to 5,000 were imported (4,999 added, 1 updated). The rest was not imported.");
		screen.getByText("Line 5007, column amount");
		screen.getByText(/You can import the whole file again/);
		expect(screen.getByRole<HTMLButtonElement>("button", { name: "Import" }).disabled).toBe(false);
		expect(posts()).toHaveLength(2);
		expect(onClose).not.toHaveBeenCalled();
	});

	it("names both lines with the same key as in the file", async () => {
		const { screen, user } = await choose(file, second(rejected(7, "line 3 has the same key")));
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("Line 5007, column amount");
		screen.getByText("Line 5003 has the same key.");
	});

	it("is not imported again into a table without a key", async () => {
		const { screen, user } = await choose(file, second(rejected(7)), { ...table, key: null });
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText(/remove the lines 2 to 5001 from the file/);
		expect(screen.queryByText(/import the whole file again/)).toBeNull();
		expect(screen.getByRole<HTMLButtonElement>("button", { name: "Import" }).disabled).toBe(true);
	});

	it("whose second part has no certain result says so", async () => {
		const { screen, user } = await choose(file, second(errorResponse(503, "unavailable", "the database is away")));
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText(/It is not known whether rows 5,001 to 10,000 were imported/);
		screen.getByText("The database is away.");
	});

	it("waits while there are too many requests", async () => {
		const busy = errorResponse(429, "rate_limited", "too many requests");
		busy.headers.set("Retry-After", "1");
		const { screen, user, posts } = await choose(file, second(busy));
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText(/^Imported:/, {}, { timeout: 30_000 });
		expect(posts()).toHaveLength(4);
		expect(posts()[1]).toBe(posts()[2]);
	});

	it("shows its progress and can be stopped", async () => {
		const answer: { second?: (response: object) => void } = {};
		let count = 0;
		const { screen, user, posts } = await choose(file, () =>
			++count === 1 ? { created: 5_000, updated: 0 } : new Promise((resolve) => (answer.second = resolve)),
		);
		await user.click(screen.getByRole("button", { name: "Import" }));
		await screen.findByText("5,000 of 10,001 rows imported");
		await user.click(screen.getByRole("button", { name: "Stop" }));
		await vi.waitFor(() => expect(answer.second).toBeDefined());
		answer.second?.({ created: 5_000, updated: 0 });
		await screen.findByText(/The import was stopped. Rows 1 to 10,000 were imported/);
		expect(posts()).toHaveLength(2);
	});
});
