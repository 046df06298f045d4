import { mkdirSync } from "node:fs";
import { createServer, type Server as Receiver } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, type Watched } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

// The screenshots of docs/tour.md. `make pictures` updates them there.
const folder = fileURLToPath(new URL(process.env.PICTURES ? "../../docs/tour/" : "./shots/", import.meta.url));

let server: Server;
let browser: Browser;
let watched: Watched;
let shop: Receiver;
let order = "";

beforeAll(async () => {
	mkdirSync(folder, { recursive: true });
	shop = createServer((request, response) => {
		response.setHeader("Content-Type", "application/json");
		const lines = [{ sku: "mill-1" }, { sku: "belt-7" }, { sku: "gear-12" }];
		response.end(JSON.stringify(request.url === "/orders" ? { total: 240, lines } : { reserved: true }));
	});
	await new Promise<void>((done) => shop.listen(0, "127.0.0.1", done));
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 900 } }));
	order = await makeOrder(`http://127.0.0.1:${(shop.address() as AddressInfo).port}`);
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
	shop?.close();
});

async function makeOrder(address: string): Promise<string> {
	const { id } = await server.call("POST", "/v1/workflows", { name: "Big order" });
	await server.call("PATCH", `/v1/workflows/${id}`, {
		state: "active",
		triggers: [
			{ id: "hook", type: "webhook" },
			{ id: "nightly", type: "schedule", cron: "0 3 * * *", timezone: "Europe/Paris" },
		],
		steps: [
			{ id: "get", name: "Get the order", uses: "http.request", with: { url: `${address}/orders` } },
			{
				id: "approve",
				name: "Ask for approval",
				needs: ["get"],
				if: "steps.get.output.body.total > 100",
				uses: "flow.approval",
				with: { message: "An order of ${{ steps.get.output.body.total }} euros. Send it?" },
			},
			{
				id: "lines",
				name: "Each line",
				needs: ["get"],
				foreach: "${{ steps.get.output.body.lines }}",
				parallel: 5,
				steps: [
					{
						id: "reserve",
						name: "Reserve the goods",
						uses: "http.request",
						with: { method: "POST", url: `${address}/stock`, body: { sku: "${{ item.sku }}" } },
					},
				],
			},
			{
				id: "confirm",
				name: "Confirm",
				needs: ["approve", "lines"],
				uses: "log.write",
				with: { message: "Order ${{ trigger.payload.id }} is on its way" },
			},
		],
	});
	return id;
}

async function picture(name: string): Promise<void> {
	const { page } = watched;
	await page.evaluate(() => document.fonts.ready);
	await page.waitForLoadState("networkidle", { timeout: 3_000 }).catch(() => undefined);
	await page.screenshot({ path: `${folder}${name}.png` });
	watched.check();
}

test("a tour: build, run, decide, inspect", async () => {
	const { page } = watched;
	for (let i = 0; i < 6; i++) {
		const run = await server.call("POST", `/v1/workflows/${order}/runs`, { payload: { id: 1040 + i } });
		if (i === 5) break;
		await expect
			.poll(async () => (await server.call("GET", `/v1/runs/${run.id}`)).waiting_for, { timeout: 60_000 })
			.not.toBeNull();
		await server.call("POST", `/v1/runs/${run.id}/steps/approve/resume`, { approved: i !== 2 });
		await expect
			.poll(async () => (await server.call("GET", `/v1/runs/${run.id}`)).status, { timeout: 60_000 })
			.not.toBe("running");
	}
	await page.goto(`/workflows/${order}`);
	await page.getByText("Get the order").first().waitFor();
	await page.getByText("Get the order").first().click();
	await page.getByLabel("Name", { exact: true }).waitFor();
	await picture("builder");

	await page.goto("/workflows");
	await page.getByRole("link", { name: "Big order" }).waitFor();
	await picture("workflows");

	await page.goto("/runs");
	await page.getByRole("row").nth(2).waitFor();
	await picture("runs");

	await page.goto("/approvals");
	await page.getByText("An order of 240 euros. Send it?").waitFor();
	await picture("approvals");

	const { data } = await server.call("GET", "/v1/runs?status=succeeded&limit=1");
	await page.goto(`/runs/${data[0].id}`);
	await page.getByText("Reserve the goods").first().waitFor();
	await picture("run");
	await page.getByRole("tab", { name: "Timeline" }).or(page.getByText("Timeline")).first().click();
	await picture("timeline");

	await page.goto("/templates");
	await page.getByRole("heading", { level: 1 }).waitFor();
	await page.getByRole("link").filter({ hasText: /./ }).nth(12).waitFor();
	await picture("templates");
});
