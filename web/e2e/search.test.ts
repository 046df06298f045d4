import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, shoot, type Watched, waitForFocus } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

const count = 503;
const target = "Reconcile the ledger of Zürich";

let server: Server;
let browser: Browser;
let watched: Watched;
/** The oldest workflow, which is last in every list. */
let oldest: string;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 900 } }));
	oldest = (await server.call("POST", "/v1/workflows", { name: target })).id;
	for (let n = 1; n < count; n += 50) {
		const names = Array.from({ length: Math.min(50, count - n) }, (_, i) => `Import of branch ${n + i}`);
		await Promise.all(names.map((name) => server.call("POST", "/v1/workflows", { name })));
	}
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

/** search opens the palette and types into it. */
async function search(text: string): Promise<void> {
	const { page } = watched;
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.keyboard.press("Control+k");
	await waitForFocus(page.getByRole("combobox", { name: "Search and commands" }));
	await page.keyboard.type(text);
}

/** choose opens a workflow select and picks a workflow by keyboard. */
async function choose(name: string, text: string, option: string): Promise<void> {
	const { page } = watched;
	await page.getByRole("combobox", { name, exact: true }).click();
	await page.getByRole("combobox", { name: "Search workflows" }).fill(text);
	await page.getByRole("option", { name: option, exact: true, selected: true }).waitFor();
	await page.keyboard.press("Enter");
	await page.getByRole("combobox", { name: "Search workflows" }).waitFor({ state: "detached" });
}

test("Ctrl-K finds the last of 503 workflows by its exact name", async () => {
	const { page } = watched;
	await page.goto("/runs");
	await search(target);
	await page.getByRole("option", { name: target, exact: true, selected: true }).waitFor();
	await shoot(page, "palette-search");
	await page.keyboard.press("Enter");
	await page.waitForURL(`**/workflows/${oldest}`);
	watched.check();
});

test("Ctrl-K runs a workflow, finds the run by its ID, and reports no results", async () => {
	const { page } = watched;
	await page.goto("/runs");
	await search("run ZÜRICH ledger");
	await page.getByRole("option", { name: `Run ${target}`, selected: true }).waitFor();
	await page.keyboard.press("Enter");
	await page.waitForURL("**/runs/run_*");
	const run = new URL(page.url()).pathname.split("/")[2] ?? "";

	await page.goto("/workflows");
	await search("nothing is called like this");
	await page.getByText("No results for “nothing is called like this”.").waitFor();
	await page.getByRole("combobox", { name: "Search and commands" }).fill(run);
	await page.getByRole("option", { name: target, selected: true }).waitFor();
	await page.keyboard.press("Enter");
	await page.waitForURL(`**/runs/${run}`);
	watched.check();
});

test("a failed search shows its error", async () => {
	const { page } = watched;
	await page.route("**/ui/v1/search?*", (route) =>
		route.fulfill({ status: 400, json: { error: { code: "invalid_request", message: "q: is not acceptable" } } }),
	);
	watched.expect("status of 400");
	await page.goto("/workflows");
	await search("ledger");
	await page.getByRole("alert").getByText("q: is not acceptable").waitFor();
	await page.unroute("**/ui/v1/search?*");
	watched.check();
});

test("the workflow filter of the run list finds the last workflow and keeps it in the URL", async () => {
	const { page } = watched;
	await page.goto("/runs");
	const filter = page.getByRole("combobox", { name: "Workflow", exact: true });
	await filter.click();
	await page.getByText("There are more workflows. Type to narrow the list.").waitFor();
	await shoot(page, "workflow-select");
	await page.keyboard.press("Escape");
	await waitForFocus(filter);
	await choose("Workflow", "ledger zürich", target);
	await page.waitForURL(`**/runs?workflow=${oldest}`);
	await page.getByRole("link", { name: target }).waitFor();
	await page.reload();
	await expect.poll(() => filter.textContent()).toBe(target);
	await filter.click();
	await page.getByRole("option", { name: "All workflows" }).click();
	await page.waitForURL("**/runs");
	watched.check();
});

test("the workflow list is searched on the server", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByLabel("Search workflows").fill("LEDGER");
	await page.waitForURL("**/workflows?text=LEDGER");
	await expect.poll(() => page.getByRole("row").count()).toBe(2);
	await page.getByRole("row", { name: target }).waitFor();
	watched.check();
});

test("a webhook is bound to the last workflow", async () => {
	const { page } = watched;
	await page.goto("/webhooks?new=1");
	await page.getByLabel("URL").fill("https://example.com/hooks");
	await choose("Workflow", target, target);
	await shoot(page, "webhook-workflow");
	await page.getByRole("button", { name: "Create webhook" }).click();
	await page.getByRole("button", { name: "I have stored it" }).click();
	await page.getByRole("link", { name: target }).waitFor();
	await page.goto("/webhooks");
	await page.getByRole("row", { name: target }).waitFor();
	watched.check();
});

test("a step and a trigger in the builder can select the last workflow", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/workflows", { name: "Caller" });
	await server.call("PATCH", `/v1/workflows/${id}`, {
		triggers: [{ id: "after", type: "event", events: ["run.failed"] }],
		steps: [{ id: "call", name: "Call it", uses: "flow.run", with: { workflow_id: id } }],
	});
	await page.goto(`/workflows/${id}?step=call`);
	const field = page.locator('[data-pointer="/steps/0/with/workflow_id"]');
	await field.getByRole("combobox").click();
	await page.getByRole("combobox", { name: "Search workflows" }).fill("ledger");
	await page.getByRole("option", { name: target, exact: true }).click();
	await expect.poll(() => field.getByRole("combobox").textContent()).toBe(target);
	await shoot(page, "builder-workflow");

	await page.goto(`/workflows/${id}?step=@after`);
	await choose("Add a workflow", "ledger", target);
	const remove = page.getByRole("button", { name: `Remove ${target}` });
	await remove.waitFor();
	await shoot(page, "builder-event-workflows");
	await remove.click();
	await page.getByText("No workflow is selected").waitFor();
	watched.check();
});
