import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openPage, openSignedIn, shoot, type Watched } from "./browser";
import { longTest as test } from "./lane";
import { approving, begin, failing, waiting } from "./run.data";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn());
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("the run and approval pages have empty states", async () => {
	const { page } = watched;
	await page.goto("/runs");
	await page.getByText("No runs yet").waitFor();
	await page.goto("/approvals");
	await page.getByText("No approvals waiting").waitFor();
	await shoot(page, "approvals-empty");
	watched.check();
});

test("runs appear live, are filtered by the URL and cancelled in bulk", async () => {
	const { page } = watched;
	await begin(server, "Charge and ship", failing);
	await page.goto("/runs");
	await page.getByRole("link", { name: "Charge and ship" }).waitFor();
	const { workflow } = await begin(server, "Remind after a week", waiting);
	await server.call("POST", `/v1/workflows/${workflow}/runs`, {});
	await page.getByRole("link", { name: "Remind after a week" }).nth(1).waitFor();

	await page.getByLabel("Select all runs that are loaded").check();
	const bar = page.getByRole("region", { name: "Selected runs" });
	await bar.getByText("3 selected").waitFor();
	await shoot(page, "runs-selected");
	await bar.getByRole("button", { name: "Cancel 2" }).click();
	await page.getByRole("button", { name: "Cancel 2 runs" }).click();
	await page.getByRole("heading", { name: "2 runs cancelled" }).waitFor();
	await shoot(page, "runs-cancelled");
	await page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();

	await page.getByLabel("Status", { exact: true }).selectOption("cancelled");
	await page.getByLabel("Search runs").fill("Remind");
	await page.waitForURL(/status=cancelled&text=Remind/);
	await page.getByRole("link", { name: "Charge and ship" }).waitFor({ state: "detached" });
	await expect.poll(() => page.getByRole("link", { name: "Remind after a week" }).count()).toBe(2);
	await page.goBack();
	await page.getByRole("link", { name: "Charge and ship" }).waitFor();
	await page.goto("/runs?text=nothing-like-it");
	await page.getByRole("button", { name: "Clear filters" }).click();
	await page.getByRole("link", { name: "Charge and ship" }).waitFor();
	watched.check();
});

test("waiting runs are listed separately, with their reason and who started them", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Ask before shipping", approving);
	await page.goto("/runs?text=Ask");
	const row = page.getByRole("row", { name: /Ask before shipping/ });
	await row.getByText(/^Waiting for approval/).waitFor();
	await row.getByRole("img", { name: "Waiting" }).waitFor();
	await row.getByText("API key “First admin key”").waitFor();
	await page.getByLabel("Status", { exact: true }).selectOption("running");
	await page.getByText("No runs match these filters").waitFor();
	await page.getByLabel("Status", { exact: true }).selectOption("waiting");
	await row.waitFor();
	await shoot(page, "runs-waiting");
	await server.call("POST", `/v1/runs/${run}/cancel`);
	await row.waitFor({ state: "detached" });
	watched.check();
});

test("a viewer sees no actions on runs", async () => {
	const { run } = await begin(server, "Only to look at", waiting);
	const state = await watched.context.storageState();
	const reader = await openPage(browser, server, { storageState: state });
	await reader.context.route("**/ui/v1/session", async (route) => {
		const response = await route.fetch();
		await route.fulfill({ response, json: { ...(await response.json()), role: "viewer", scopes: ["read"] } });
	});
	await reader.page.goto("/runs");
	await reader.page.getByRole("link", { name: "Only to look at" }).waitFor();
	expect(await reader.page.getByRole("checkbox").count()).toBe(0);
	await reader.page.goto(`/runs/${run}`);
	await reader.page.getByRole("treeitem", { name: /Wait a week/ }).waitFor();
	expect(await reader.page.getByRole("button", { name: /Cancel|Run again|Retry/ }).count()).toBe(0);
	reader.check();
	await reader.close();
	await server.call("POST", `/v1/runs/${run}/cancel`);
});

test("an approval is decided from the list", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Big order", approving);
	await page.goto("/approvals");
	const item = page.getByRole("listitem").filter({ hasText: "Ship order 42?" });
	await item.waitFor();
	await shoot(page, "approvals-waiting");
	await item.getByRole("button", { name: "Reject" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
	await page.getByText("No approvals waiting").waitFor();
	const output = async () => (await server.call("GET", `/v1/runs/${run}/steps/ask`)).output;
	await expect.poll(output).toMatchObject({ approved: false });
	watched.check();
});
