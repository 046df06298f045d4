import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copied, openPage, openSignedIn, shoot, type Watched } from "./browser";
import { longTest } from "./lane";
import { approving, begin, failing, large, lines, log, looping, many, tenThousand, waiting } from "./run.data";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 860 } }));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("a failed run shows its error and can be retried from the failed step", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Charge and ship", failing, { order: 42 });
	await page.goto(`/runs/${run}`);
	const banner = page.getByRole("region", { name: "Why the run failed" });
	await banner.getByText("connection_failed").waitFor();
	await banner.getByText("Attempt 3 of 3").waitFor();
	await page.getByRole("tab", { name: "Attempts 3" }).click();
	await page.getByText("Attempt 2", { exact: true }).waitFor();
	await page.getByRole("treeitem", { name: /Reserve the stock/ }).click();
	await page.getByRole("tab", { name: "Logs" }).click();
	await page.getByText("This is reserve").waitFor();
	await page.getByRole("treeitem", { name: /Charge the card/ }).click();
	await page.getByRole("tab", { name: "Input" }).click();
	await shoot(page, "run-failed");
	await page.getByRole("button", { name: "Timeline" }).click();
	await page.getByRole("tree", { name: "Timeline of the steps" }).waitFor();
	await shoot(page, "run-timeline");
	await page.getByRole("button", { name: "Copy details" }).click();
	await expect.poll(() => copied(page)).toContain("connection_failed: ");
	await page.getByRole("button", { name: "More" }).click();
	// A toast disappears again, so the wait for it begins before the click.
	await Promise.all([
		page.getByText("Set STEPMILL_KEY to your API key").waitFor(),
		page.getByRole("menuitem", { name: "Copy as cURL" }).click(),
	]);
	await expect.poll(() => copied(page)).toContain(`-d '{"payload":{"order":42}}'`);
	await page.getByRole("button", { name: /^Retry/ }).click();
	await page.waitForURL((url) => !url.pathname.endsWith(run));
	await page.getByText("Retry of").waitFor();
	await Promise.all([
		page.getByText("Started a new run with the same payload.").waitFor(),
		page.getByRole("button", { name: "Run again" }).click(),
	]);
	watched.check();
});

test("running again keeps the headers and the query of a webhook call", async () => {
	const { page } = watched;
	const { id: workflow } = await server.call("POST", "/v1/workflows", { name: "Called again" });
	await server.call("PATCH", `/v1/workflows/${workflow}`, {
		state: "active",
		triggers: [{ id: "hook", type: "webhook" }],
		steps: [
			{
				id: "seen",
				uses: "data.set",
				with: { values: { event: "${{ trigger.headers['x-event'] }}", page: "${{ trigger.query.page }}" } },
			},
		],
	});
	const { data } = await server.call("GET", `/v1/workflows/${workflow}/triggers`);
	await fetch(`${data[0].url}?page=7`, {
		method: "POST",
		headers: { "Content-Type": "application/json", "X-Event": "order.created" },
		body: "{}",
	});
	const list = `/v1/workflows/${workflow}/runs`;
	await expect.poll(async () => (await server.call("GET", list)).data.length).toBe(1);
	const [{ id: run }] = (await server.call("GET", list)).data;
	await page.goto(`/runs/${run}`);
	await page.getByRole("button", { name: "Run again" }).click();
	await page.waitForURL((url) => !url.pathname.endsWith(run));
	await page.getByRole("treeitem", { name: /seen/ }).click();
	await page.getByRole("tab", { name: "Output" }).click();
	const output = page.getByRole("tabpanel", { name: "Output" });
	await output.getByText('"order.created"').waitFor();
	await output.getByText('"7"').waitFor();
	watched.check();
});

longTest("a failed request shows the response", async () => {
	const { page } = watched;
	const shop = createServer((request, response) => {
		const rejected = request.url === "/rejected";
		response.writeHead(rejected ? 422 : 500, { "Content-Type": "application/json" });
		response.end(JSON.stringify({ reason: rejected ? "the quantity is negative" : "the database is away" }));
	});
	await new Promise<void>((done) => shop.listen(0, "127.0.0.1", done));
	const order = (path: string) => ({
		id: "order",
		name: "Order it",
		uses: "http.request",
		with: { url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}${path}` },
		retry: { max_attempts: 1 },
	});
	const banner = page.getByRole("region", { name: "Why the run failed" });
	for (const [path, body, hint] of [
		["/rejected", '{"reason":"the quantity is negative"}', /rejected the request/],
		["/failed", '{"reason":"the database is away"}', /The server failed/],
	] as const) {
		const { run } = await begin(server, "Order", [order(path)]);
		await page.goto(`/runs/${run}`);
		await banner.getByText(body).waitFor();
		await banner.getByText(hint).waitFor();
	}
	await page.getByRole("tab", { name: "Input" }).click();
	await banner.getByRole("button", { name: "Show response" }).click();
	await page.getByRole("tab", { name: "Output", selected: true }).waitFor();
	await page.getByLabel("Output").getByText("the database is away").waitFor();
	await shoot(page, "run-response");
	await page.getByRole("button", { name: "Copy details" }).click();
	await expect.poll(() => copied(page)).toContain("Response: {");
	shop.close();
	watched.check();
});

longTest("a failed run is retried with the fixed version or the original one", async () => {
	const { page } = watched;
	const { workflow, run } = await begin(server, "Fix and retry", failing);
	const fixed = failing.map((step) => (step.id === "charge" ? log("charge", { name: "Charge the card" }) : step));
	await page.goto(`/runs/${run}`);
	await page.getByRole("button", { name: "Retry from the failed step" }).waitFor();
	await server.call("PATCH", `/v1/workflows/${workflow}`, { steps: fixed });
	await page.reload();
	const retries = page.getByRole("button", { name: /^Retry/ });
	await expect.poll(() => retries.allInnerTexts()).toEqual(["Retry with v3 (current)", "Retry with v2 (original)"]);
	await shoot(page, "run-fix-and-retry");
	await Promise.all([page.getByText("Retrying with v3.").waitFor(), retries.first().click()]);
	await page.waitForURL((url) => !url.pathname.endsWith(run));
	await page.getByText("Succeeded").first().waitFor();
	await page.getByText("v3", { exact: true }).waitFor();
	await page.getByText("Run by Ada Lovelace").waitFor();
	await page.getByRole("treeitem", { name: /Reserve the stock/ }).click();
	await page.getByText(`Copied from ${run}`).waitFor();

	await page.goto(`/runs/${run}`);
	await page.getByRole("button", { name: "Retry with v2 (original)" }).click();
	await page.waitForURL((url) => !url.pathname.endsWith(run));
	await page.getByText("connection_failed").first().waitFor();
	await page.getByText("v2", { exact: true }).waitFor();
	watched.check();
});

test("a run is shown live and can be cancelled", async () => {
	const { page } = watched;
	const steps = [log("first"), ...waiting, log("last")];
	const { run } = await begin(server, "Remind after a week", steps);
	await page.goto(`/runs/${run}`);
	await page.getByRole("region", { name: "What the run is waiting for" }).waitFor();
	await shoot(page, "run-waiting");
	await page.getByRole("button", { name: "Cancel run" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
	await page
		.getByRole("banner")
		.getByText("Cancelled")
		.or(page.locator("header").getByText("Cancelled"))
		.first()
		.waitFor();
	await page
		.getByRole("treeitem", { name: /Wait a week/ })
		.getByRole("img", { name: "Cancelled" })
		.waitFor();
	await shoot(page, "run-cancelled");
	watched.check();
});

longTest("an approval on the run page resumes the run", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Big order", approving);
	await page.goto(`/runs/${run}`);
	await page.getByRole("button", { name: "Approve" }).first().click();
	await page.getByLabel("Comment").fill("Go ahead");
	await page.getByLabel("Data").fill("{carrier");
	const dialog = page.getByRole("dialog");
	await dialog.getByRole("button", { name: "Approve" }).click();
	await dialog.getByText("This is not valid JSON").waitFor();
	await shoot(page, "run-answer");
	await page.getByLabel("Data").fill('{"carrier":"express"}');
	await dialog.getByRole("button", { name: "Approve" }).click();
	await page
		.getByRole("treeitem", { name: /Ship it/ })
		.getByRole("img", { name: "Succeeded" })
		.waitFor();
	const step = await server.call("GET", `/v1/runs/${run}/steps/ask`);
	expect(step.output).toMatchObject({ approved: true, comment: "Go ahead", data: { carrier: "express" } });
	watched.check();
});

longTest("loops are navigated by keyboard, failed rounds first, and the URL keeps the selection", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Reserve every line", looping, lines);
	await page.goto(`/runs/${run}`);
	const tree = page.getByRole("tree", { name: "Steps" });
	await tree.getByText("failed").first().waitFor();
	await tree.focus();
	for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) await tree.press(key);
	await page.waitForURL((url) => url.searchParams.get("step") === "lines[7].pick");
	await page.getByText("out of stock").first().waitFor();
	await page.keyboard.press("]");
	await page.waitForURL((url) => url.searchParams.get("step") === "lines[0].pick");
	await page.getByRole("tab", { name: "Output" }).click();
	await page.reload();
	await page.getByRole("tab", { name: "Output", selected: true }).waitFor();
	await page.getByText("3 rounds").first().waitFor();
	await expect.poll(() => new URL(page.url()).searchParams.get("step")).toBe("lines[0].pick");
	await shoot(page, "run-loop");
	watched.check();
});

longTest("ten thousand rounds can be browsed", async () => {
	const { page } = watched;
	const { run } = await begin(server, "Ten thousand", many, tenThousand);
	await page.goto(`/runs/${run}`);
	const tree = page.getByRole("tree", { name: "Steps" });
	await tree.getByText("10000/10000").waitFor();
	await tree.focus();
	for (const key of ["Home", "ArrowRight", "End"]) await tree.press(key);
	await page.getByRole("treeitem", { name: /Round 10000/, selected: true }).waitFor();
	await expect.poll(() => page.getByRole("treeitem").count()).toBeLessThan(100);
	await shoot(page, "run-ten-thousand");
	watched.check();
});

longTest("200 steps are drawn as a graph, and as a list on a phone", async () => {
	const { run } = await begin(server, "Two hundred steps", large);
	await watched.page.goto(`/runs/${run}`);
	await watched.page.locator(".react-flow__node").nth(200).waitFor({ state: "attached" });
	await shoot(watched.page, "run-large");
	watched.check();
	const state = await watched.context.storageState();
	const phone = await openPage(browser, server, { viewport: { width: 360, height: 740 }, storageState: state });
	await phone.page.goto(`/runs/${run}`);
	await phone.page.getByRole("treeitem", { name: /s0_0/ }).click();
	await phone.page.getByRole("dialog").getByRole("tab", { name: "Summary" }).waitFor();
	await shoot(phone.page, "run-phone");
	expect(await phone.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
	phone.check();
	await phone.close();
});

longTest("an unknown run shows an error", async () => {
	watched.expect("404");
	await watched.page.goto("/runs/run_01m7f9hb3mevr88y42wdngtn4v");
	await watched.page
		.getByRole("alert")
		.getByText(/there is no run/i)
		.waitFor();
	watched.check();
});
