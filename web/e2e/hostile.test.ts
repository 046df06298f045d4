import { createServer, type Server as Receiver } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, type Watched } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

// Untrusted text in names, responses and URLs is always rendered as text.

const image = `<img src=x onerror="window.owned=1">`;
const script = `"><script>window.owned=1</script>`;
const link = "javascript:window.owned=1";

let server: Server;
let browser: Browser;
let watched: Watched;
let outside: Receiver;
let workflow = "";
let failed = "";
let waits = "";
let table = "";

beforeAll(async () => {
	outside = createServer((_, response) => {
		response.setHeader("Content-Type", "application/json");
		response.end(JSON.stringify({ [image]: script, link, html: `<svg onload="window.owned=1">` }));
	});
	await new Promise<void>((done) => outside.listen(0, "127.0.0.1", done));
	const address = `http://127.0.0.1:${(outside.address() as AddressInfo).port}/?${encodeURIComponent(image)}`;
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 900 } }));
	watched.page.on("dialog", () => expect.unreachable("a dialog was opened"));

	workflow = (await server.call("POST", "/v1/workflows", { name: image, description: script })).id;
	await server.call("PATCH", `/v1/workflows/${workflow}`, {
		state: "active",
		triggers: [{ id: "hook", type: "webhook" }],
		steps: [
			{ id: "get", name: image, uses: "http.request", with: { url: address } },
			{ id: "say", name: script, uses: "log.write", with: { message: image } },
			{ id: "fail", name: link, uses: "flow.stop", with: { status: "failed", message: `${image} ${script}` } },
		],
	});
	failed = (await server.call("POST", `/v1/workflows/${workflow}/runs`, { payload: { [image]: script } })).id;
	const asks = (await server.call("POST", "/v1/workflows", { name: script })).id;
	const steps = [{ id: "ask", name: image, uses: "flow.approval", with: { message: `${image} ${link}` } }];
	await server.call("PATCH", `/v1/workflows/${asks}`, { state: "active", steps });
	waits = (await server.call("POST", `/v1/workflows/${asks}/runs`, {})).id;
	while ((await server.call("GET", `/v1/runs/${failed}`)).status === "running") await setTimeout(50);
	await server.call("POST", "/v1/api-keys", { name: image, scopes: ["read"] });
	await server.call("POST", "/v1/webhooks", { url: `https://example.com/?${image}`, events: ["run.failed"] });
	await server.call("PUT", "/v1/variables/hostile", { value: { [image]: script } });
	const columns = [
		{ name: "text", type: "text" },
		{ name: "json", type: "json" },
	];
	table = (await server.call("POST", "/v1/tables", { name: "hostile", columns })).id;
	await server.call("POST", `/v1/tables/${table}/rows`, { values: { text: image, json: { [image]: script } } });
	await server.call("PUT", "/v1/state/hostile", { value: { [image]: script } });
	await server.call("PATCH", `/v1/workspaces/${(await server.call("GET", "/v1/workspaces")).data[0].id}`, {
		name: image,
	});
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
	outside?.close();
});

async function harmless(): Promise<void> {
	const { page } = watched;
	const found = await page.evaluate(() => ({
		owned: "owned" in window,
		images: document.querySelectorAll("img[src='x'], svg[onload]").length,
		scripts: [...document.scripts].filter((one) => !one.src).length,
		links: [...document.links].filter((one) => one.protocol === "javascript:").length,
	}));
	expect(found).toEqual({ owned: false, images: 0, scripts: 0, links: 0 });
	watched.check();
}

test.each([
	["/workflows", () => "/workflows", image],
	["the builder", () => `/workflows/${workflow}`, script],
	["/runs", () => "/runs", image],
	["a failed run", () => `/runs/${failed}`, script],
	["a run that waits", () => `/runs/${waits}`, image],
	["/approvals", () => "/approvals", image],
	["/keys", () => "/keys", image],
	["/webhooks", () => "/webhooks", "example.com"],
	["/secrets", () => "/secrets?tab=variables", "hostile"],
	["a table", () => `/tables/${table}`, image],
	["keys", () => "/tables?tab=keys", "hostile"],
	["the audit log", () => "/settings/audit", "img src=x"],
	["/settings", () => "/settings", "Workspace"],
])("%s shows it as text", async (_, path, text) => {
	const { page } = watched;
	await page.goto(path());
	await page.getByText(text, { exact: false }).filter({ visible: true }).first().waitFor();
	await harmless();
});

test.each(["Summary", "Input", "Output", "Logs"])("%s of a step shows it as text", async (tab) => {
	const { page } = watched;
	await page.goto(`/runs/${failed}`);
	await page.getByText(image).first().waitFor();
	await page
		.getByText(tab === "Logs" ? script : image)
		.first()
		.click();
	await page.getByRole("tab", { name: tab }).click();
	await harmless();
});
