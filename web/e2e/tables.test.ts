import { readFileSync } from "node:fs";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched, waitForFocus, write } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/tables"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const wide = { width: 1280, height: 800 };
const narrow = { width: 375, height: 740 };

/** shootBoth takes screenshots at both widths. */
async function shootBoth(page: Page, name: string): Promise<void> {
	await shoot(page, name);
	await page.setViewportSize(narrow);
	await shoot(page, `${name}-narrow`);
	await page.setViewportSize(wide);
}

const cell = (page: Page, text: string): Locator => page.getByRole("gridcell", { name: text, exact: true });

/** column returns the texts of the cells of a column, counted from 0. */
async function column(page: Page, at: number): Promise<string[]> {
	return page.locator(`td[data-col="${at + 1}"]`).allTextContents();
}

async function edit(page: Page, from: Locator, text: string): Promise<void> {
	await from.dblclick();
	const editor = page.getByRole("grid").getByRole("textbox");
	await waitForFocus(editor);
	await editor.fill(text);
	await editor.press("Enter");
}

async function chooseFile(page: Page, name: string, text: string): Promise<void> {
	const chooser = page.waitForEvent("filechooser");
	await page.getByRole("button", { name: "Choose a file" }).click();
	await (await chooser).setFiles({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
}

test("a table is created from the example", async () => {
	const { page } = watched;
	await page.getByText("No tables yet").waitFor();
	await shootBoth(page, "tables-empty");
	await page.getByRole("button", { name: "Start from the example" }).click();
	const dialog = page.getByRole("dialog", { name: "New table" });
	await dialog.getByRole("button", { name: "Add column" }).click();
	const added = dialog.getByRole("group", { name: "Column 4" });
	await added.getByLabel("Column 4: name").fill("2nd");
	await added.getByLabel("Column 4: type").selectOption("json");
	watched.expect("400");
	await dialog.getByRole("button", { name: "Create table" }).click();
	await added.getByText(/must start with a letter/i).waitFor();
	await shootBoth(page, "tables-new");
	await added.getByLabel("Column 4: name").fill("extra");
	await dialog.getByRole("button", { name: "Create table" }).click();
	await page.getByRole("heading", { name: "customers", level: 1 }).waitFor();
	await page.getByText("No rows yet").waitFor();
	await shootBoth(page, "table-empty");
	watched.check();
});

test("rows are added and edited in their cells", async () => {
	const { page } = watched;
	watched.expect("400");
	watched.expect("409");
	for (const email of ["ada@example.com", "bob@example.com"]) {
		await page.keyboard.press("n");
		const dialog = page.getByRole("dialog");
		await dialog.getByLabel("email").fill(email);
		await dialog.getByLabel("amount").fill(email.startsWith("ada") ? "many" : "5");
		await dialog.getByRole("button", { name: "Add row" }).click();
		if (email.startsWith("ada")) {
			await dialog.getByText(/Must be a number/).waitFor();
			await shoot(page, "table-new-row");
			await dialog.getByLabel("amount").fill("12345678901234567890.5");
			await dialog.getByRole("button", { name: "Add row" }).click();
		}
		await dialog.waitFor({ state: "detached" });
		await cell(page, email).waitFor();
	}
	// Numbers keep all of their digits.
	await cell(page, "12345678901234567890.5").waitFor();

	// The API's error appears at the cell, and Escape discards the value.
	await edit(page, cell(page, "5"), "five");
	await page.getByRole("grid").getByRole("alert").filter({ hasText: "Must be a number" }).waitFor();
	await shootBoth(page, "table-cell-error");
	await page.keyboard.press("Escape");
	await waitForFocus(cell(page, "5"));
	await edit(page, cell(page, "bob@example.com"), "ada@example.com");
	await page.getByRole("grid").getByRole("alert").filter({ hasText: "Is the key of another row" }).waitFor();
	await page.keyboard.press("Escape");

	// With the keyboard alone: from the key of the second row to its city.
	await waitForFocus(cell(page, "bob@example.com"));
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("Enter");
	const editor = page.getByRole("grid").getByRole("textbox", { name: "city" });
	await waitForFocus(editor);
	await editor.pressSequentially("Bern");
	await page.keyboard.press("Enter");
	await waitForFocus(cell(page, "Bern"));

	// JSON opens in an editor.
	await page.keyboard.press("End");
	await page.keyboard.press("Enter");
	const value = page.getByRole("dialog", { name: "Edit “extra”" }).getByRole("textbox", { name: "extra" });
	await write(value, '{"id": 12345678901234567890, "tags": ["new"]}');
	await shoot(page, "table-json");
	await page.getByRole("button", { name: "Save value" }).click();
	await waitForFocus(cell(page, '{"id":12345678901234567890,"tags":["new"]}'));
	watched.check();
});

longTest("a file is imported, or nothing of it", async () => {
	const { page } = watched;
	await page.getByRole("button", { name: "Import CSV" }).click();
	const dialog = page.getByRole("dialog");
	await chooseFile(page, "bad.csv", "email,town,amount\ncyd@example.com,Basel,1\n");
	await dialog.getByText("No such column").waitFor();
	watched.expect("400");
	await dialog.getByRole("button", { name: "Import", exact: true }).click();
	await dialog.getByText("Line 1, column town").waitFor();
	await chooseFile(page, "bad.csv", "email,city,amount\ncyd@example.com,Basel,1\ndan@example.com,Basel,x\n");
	await dialog.getByRole("cell", { name: "cyd@example.com" }).waitFor();
	await dialog.getByRole("button", { name: "Import", exact: true }).click();
	await dialog.getByText("Line 3, column amount").waitFor();
	await shootBoth(page, "table-import");
	const lines = Array.from({ length: 60 }, (_, i) => `user${String(i).padStart(2, "0")}@example.com,Basel,${i}`);
	await chooseFile(page, "good.csv", ["email,city,amount", "bob@example.com,Zug,7", ...lines].join("\n"));
	await dialog.getByText("good.csv").waitFor();
	await dialog.getByRole("button", { name: "Import", exact: true }).click();
	await dialog.waitFor({ state: "detached" });
	await page.getByText("Imported: 60 rows added, 1 updated").waitFor();
	await page.getByText("Rows 1–50 of 62").waitFor();
	await cell(page, "Zug").waitFor();
	await page.getByRole("button", { name: "Next" }).click();
	await page.getByText("Rows 51–62 of 62").waitFor();
	await page.getByRole("button", { name: "Previous" }).click();
	await page.getByText("Rows 1–50 of 62").waitFor();
	watched.check();
});

longTest("rows are sorted and filtered, and the URL says how", async () => {
	const { page } = watched;
	await page.getByRole("button", { name: "amount", exact: true }).click();
	await page
		.getByRole("columnheader", { name: /amount/, exact: false })
		.and(page.locator("[aria-sort=ascending]"))
		.waitFor();
	await page.getByRole("button", { name: "amount", exact: true }).click();
	await expect.poll(async () => (await column(page, 2))[0]).toBe("12345678901234567890.5");
	expect((await column(page, 2)).slice(1, 3)).toEqual(["59", "58"]);

	await page.getByRole("button", { name: "Filter", exact: true }).click();
	const filter = page.getByRole("search", { name: "Filter" });
	await filter.getByLabel("Condition 1: column").selectOption("city");
	await filter.getByLabel("Condition 1: operator").selectOption("starts_with");
	await filter.getByLabel("Condition 1: value").fill("Ba");
	await filter.getByRole("button", { name: "Add condition" }).click();
	await filter.getByLabel("Condition 2: column").selectOption("amount");
	await filter.getByLabel("Condition 2: operator").selectOption("<");
	await filter.getByLabel("Condition 2: value").fill("few");
	watched.expect("400");
	await filter.getByRole("button", { name: "Apply" }).click();
	await filter.getByText(/Must be a number/).waitFor();
	await filter.getByLabel("Condition 2: value").fill("3");
	await filter.getByLabel("Condition 2: value").press("Enter");
	await expect.poll(() => column(page, 2)).toEqual(["2", "1", "0"]);
	await shootBoth(page, "table-filtered");

	await page.reload();
	await expect.poll(() => column(page, 2)).toEqual(["2", "1", "0"]);
	await filter.getByRole("button", { name: "Edit as JSON" }).click();
	await write(
		filter.getByRole("textbox", { name: "Filter" }),
		'{"or": [{"column": "amount", "op": "=", "value": 59}, {"column": "city", "op": "is_null"}]}',
	);
	await shoot(page, "table-filter-json");
	await filter.getByRole("button", { name: "Apply" }).click();
	await expect.poll(() => column(page, 2)).toEqual(["12345678901234567890.5", "59"]);
	await filter.getByRole("button", { name: "Clear" }).click();
	await page.getByText("Rows 1–50 of 62").waitFor();
	watched.check();
});

longTest("columns are added, changed and dropped", async () => {
	const { page } = watched;
	await page.getByRole("button", { name: "Add column" }).click();
	await page.getByLabel("Name").fill("note");
	await page.getByRole("dialog").getByRole("button", { name: "Add column" }).click();
	await page.getByRole("columnheader", { name: /note/ }).waitFor();
	const menu = async (name: string, item: string) => {
		await page.getByRole("button", { name: `Actions for the column ${name}` }).click();
		await page.getByRole("menuitem", { name: item }).click();
	};
	await menu("amount", "Change column…");
	await page.getByLabel("Name").fill("total");
	await page.getByLabel("Indexed").check();
	await shoot(page, "table-column");
	await page.getByRole("button", { name: "Save column" }).click();
	await page.getByRole("columnheader", { name: /total.*indexed/ }).waitFor();
	// The order by the old name is forgotten.
	await expect.poll(() => page.url()).not.toContain("sort=");
	await menu("note", "Drop column…");
	await page.getByText("62 rows", { exact: true }).waitFor();
	await shoot(page, "table-drop-column");
	await page.getByRole("button", { name: "Drop column" }).click();
	await page.getByRole("columnheader", { name: /note/ }).waitFor({ state: "detached" });
	watched.check();
});

longTest("selected rows are deleted, the rest is exported, and the table is deleted", async () => {
	const { page } = watched;
	await page.getByText("Rows 1–50 of 62").waitFor();
	await page.getByRole("checkbox", { name: "Select row 1", exact: true }).check();
	await page.getByRole("checkbox", { name: "Select row 2", exact: true }).check();
	await shootBoth(page, "table-rows");
	await page.getByRole("button", { name: "Delete 2" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Delete 2 rows" }).click();
	await page.getByText("Rows 1–50 of 60").waitFor();

	const [download] = await Promise.all([
		page.waitForEvent("download"),
		page.getByRole("link", { name: "Export all rows" }).click(),
	]);
	expect(download.suggestedFilename()).toBe("customers.csv");
	const lines = readFileSync(await download.path(), "utf8")
		.trimEnd()
		.split("\n");
	expect(lines).toHaveLength(61);
	expect(lines.slice(0, 2)).toEqual(["email,city,total,extra", "user00@example.com,Basel,0,"]);

	await page.goto("/tables");
	await page.getByRole("row", { name: /customers.*60/ }).waitFor();
	await shootBoth(page, "tables-list");
	await page.getByRole("link", { name: "customers" }).click();
	await page.getByRole("button", { name: "More", exact: true }).click();
	await page.getByRole("menuitem", { name: "Delete table…" }).click();
	await page
		.getByRole("dialog")
		.getByText(/60 rows \(/)
		.waitFor();
	await shoot(page, "table-delete");
	await page.getByRole("button", { name: "Delete table" }).click();
	await page.getByText("No tables yet").waitFor();
	watched.check();
});

longTest("keys of the workspace and of a workflow are set, edited and deleted", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/workflows", { name: "Watch the disk" });
	await server.call("PUT", `/v1/state/counter?workflow_id=${id}`, { value: 3 });
	await page.getByRole("tab", { name: "Keys" }).click();
	await page.getByText("No keys yet").waitFor();
	await page.getByRole("button", { name: "New key" }).first().click();
	await page.getByLabel("Name").fill("alert:disk-full");
	await write(page.getByRole("textbox", { name: "Value" }), '{"id": 12345678901234567890}');
	await page.getByLabel("Expires").selectOption("after");
	await shootBoth(page, "keys-new");
	await page.getByRole("button", { name: "Save key" }).click();
	await page.getByRole("cell", { name: '{"id":12345678901234567890}', exact: true }).waitFor();
	await page.getByRole("row", { name: /alert:disk-full.*(in 23 hours|tomorrow|in 1 day)/ }).waitFor();
	await shootBoth(page, "keys-list");

	// A new key does not overwrite an existing one.
	await page.getByRole("button", { name: "New key" }).first().click();
	await page.getByLabel("Name").fill("alert:disk-full");
	await page.getByRole("button", { name: "Save key" }).click();
	await page.getByText("“alert:disk-full” already exists. Change its value in the list.").waitFor();
	await page.getByRole("button", { name: "Cancel" }).click();

	// An edited value keeps its expiry.
	await page.getByRole("button", { name: "Edit alert:disk-full" }).click();
	await write(page.getByRole("textbox", { name: "Value" }), "1");
	await page.getByRole("button", { name: "Save key" }).click();
	await page.getByRole("dialog").waitFor({ state: "detached" });
	const stored = await server.call("GET", "/v1/state/alert:disk-full");
	expect(stored.value).toBe(1);
	expect(stored.expires_at).not.toBeNull();
	await page.getByRole("button", { name: "Delete alert:disk-full" }).click();
	await page.getByRole("button", { name: "Delete key" }).click();
	await page.getByText("No keys yet").waitFor();

	await page.getByRole("combobox", { name: "Keys of" }).click();
	await page.getByRole("option", { name: "Watch the disk" }).click();
	await page.getByRole("cell", { name: "counter", exact: true }).waitFor();

	// The builder shows the keys of its workflow.
	await page.goto(`/workflows/${id}`);
	await page.getByRole("button", { name: "Keys", exact: true }).click();
	const sheet = page.getByRole("dialog", { name: "Keys of this workflow" });
	await sheet.getByRole("cell", { name: "counter", exact: true }).waitFor();
	await shootBoth(page, "keys-workflow");
	await sheet.getByRole("button", { name: "New key" }).click();
	await page.getByRole("dialog", { name: "New key" }).getByLabel("Name").fill("last-run");
	await write(page.getByRole("textbox", { name: "Value" }), '"today"');
	await page.getByRole("button", { name: "Save key" }).click();
	await sheet.getByRole("cell", { name: "last-run", exact: true }).waitFor();
	expect((await server.call("GET", `/v1/state/last-run?workflow_id=${id}`)).value).toBe("today");
	watched.check();
});

longTest("viewers see everything and can change nothing", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/tables", {
		name: "orders",
		columns: [
			{ name: "note", type: "text" },
			{ name: "extra", type: "json" },
		],
	});
	await server.call("POST", `/v1/tables/${id}/rows`, { values: { note: "x".repeat(5_000), extra: { a: 1 } } });
	await page.route("**/ui/v1/session", async (route) => {
		const response = await route.fetch();
		await route.fulfill({ response, json: { ...(await response.json()), scopes: ["read"] } });
	});
	await page.goto("/tables");
	await page.getByRole("link", { name: "orders" }).waitFor();
	expect(await page.getByRole("button", { name: /New table|Delete orders/ }).count()).toBe(0);
	await page.getByRole("link", { name: "orders" }).click();
	const long = page.getByRole("gridcell").first();
	await long.dblclick();
	const text = await page.getByRole("dialog", { name: "note" }).getByRole("group", { name: "note" }).textContent();
	expect(text).toHaveLength(5_000);
	await page.keyboard.press("Escape");
	await waitForFocus(long);
	await shootBoth(page, "table-viewer");
	expect(await page.getByRole("button", { name: /New row|Import|More|Actions for/ }).count()).toBe(0);
	expect(await page.getByRole("checkbox").count()).toBe(0);
	await page.getByRole("link", { name: "Export all rows" }).waitFor();
	await page.unroute("**/ui/v1/session");
	watched.check();
});

longTest("a file in a row is previewed", async () => {
	const { page } = watched;
	const name = `${"a-very-long-name-of-an-invoice-".repeat(3)}.txt`;
	const uploaded = await fetch(`${server.url}/v1/files?name=${name}`, {
		method: "POST",
		headers: { Authorization: `Bearer ${server.key}`, "Content-Type": "text/plain" },
		body: "Total: 12.50",
	});
	const { id } = (await uploaded.json()) as { id: string };
	const made = await server.call("POST", "/v1/tables", {
		name: "invoices",
		columns: [
			{ name: "number", type: "number" },
			{ name: "scan", type: "file" },
		],
	});
	await server.call("POST", `/v1/tables/${made.id}/rows`, { values: { number: 1, scan: { $file: id } } });
	await page.goto(`/tables/${made.id}`);
	await page.getByRole("gridcell", { name: /very-long-name/ }).waitFor();
	await shootBoth(page, "table-file");
	await page.getByRole("button", { name: "Preview" }).click();
	await page.getByText("Total: 12.50").waitFor();
	await shoot(page, "table-file-preview");
	await page.keyboard.press("Escape");
	await waitForFocus(page.getByRole("gridcell", { name: /very-long-name/ }));
	await page.keyboard.press("Space");
	await page.getByText("Total: 12.50").waitFor();
	await page.keyboard.press("Escape");
	await waitForFocus(page.getByRole("gridcell", { name: /very-long-name/ }));
	watched.check();
});
