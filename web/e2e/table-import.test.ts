import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import { longTest as test } from "./lane";
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

/** csv returns a file with 6,001 rows of two lines each, whose first line is the header. */
function csv(amountOf: (at: number) => string): Buffer {
	const rows = Array.from({ length: 6_001 }, (_, at) => `user${at}@example.com,"Basel,\nSwitzerland",${amountOf(at)}`);
	return Buffer.from(["email,city,amount", ...rows].join("\n"));
}

test("a file with more rows than a request can have is imported in parts", async () => {
	const { page } = watched;
	// With one index, a request can have 2,500 rows.
	const { id } = await server.call("POST", "/v1/tables", {
		name: "customers",
		key: "email",
		columns: [
			{ name: "email", type: "text" },
			{ name: "city", type: "text", indexed: true },
			{ name: "amount", type: "number" },
		],
	});
	await page.goto(`/tables/${id}`);
	await page.getByRole("button", { name: "Import CSV" }).first().click(); // an empty table has two
	const dialog = page.getByRole("dialog");
	const choose = async (name: string, buffer: Buffer) => {
		const chooser = page.waitForEvent("filechooser");
		await dialog.getByRole("button", { name: "Choose a file" }).click();
		await (await chooser).setFiles({ name, mimeType: "text/csv", buffer });
		await dialog.getByText(name).waitFor();
	};
	const start = () => dialog.getByRole("button", { name: "Import", exact: true }).click();

	// The second part has an error, so only the first one is imported.
	await choose(
		"bad.csv",
		csv((at) => (at === 3_000 ? "many" : String(at))),
	);
	await dialog.getByText("The 6,001 rows are imported in 3 parts").waitFor();
	watched.expect("400");
	await start();
	await dialog
		.getByText("Rows 1 to 2,500 were imported (2,500 added, 0 updated). The rest was not imported.")
		.waitFor();
	await dialog.getByText("Line 6003, column amount").waitFor();
	await dialog.getByText("You can import the whole file again").waitFor();
	await shoot(page, "table-import-rejected");
	expect((await server.call("GET", `/v1/tables/${id}`)).rows).toBe(2_500);

	// The corrected file is stopped while its second part is being imported.
	let release = () => {};
	const held = new Promise<void>((resolve) => {
		release = resolve;
	});
	let requests = 0;
	await page.route("**/import", async (route) => {
		if (++requests === 2) await held;
		await route.continue();
	});
	await choose("good.csv", csv(String));
	await start();
	await dialog.getByText("2,500 of 6,001 rows imported").waitFor();
	await shoot(page, "table-import-progress");
	await page.setViewportSize({ width: 375, height: 740 });
	await shoot(page, "table-import-progress-narrow");
	await page.setViewportSize({ width: 1280, height: 800 });
	await dialog.getByRole("button", { name: "Stop" }).click();
	release();
	await dialog
		.getByText("The import was stopped. Rows 1 to 5,000 were imported (2,500 added, 2,500 updated).")
		.waitFor();
	await shoot(page, "table-import-stopped");
	await page.unroute("**/import");

	// Imported again, the rows that are in the table are updated.
	await start();
	await page.getByText("Imported: 1,001 rows added, 5,000 updated").waitFor();
	await dialog.waitFor({ state: "detached" });
	await page.getByText("Rows 1–50 of 6,001").waitFor();
	watched.check();
});
