import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;
let shop: HttpServer;
let address: string;

beforeAll(async () => {
	shop = createServer((request, response) => {
		response.statusCode = request.headers["x-key"] === "let-me-in" ? 200 : 401;
		response.end("{}");
	});
	await new Promise<void>((done) => shop.listen(0, "127.0.0.1", done));
	address = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
	({ server, browser, watched } = await openSignedIn("/connections"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
	shop?.close();
});

test("a custom connection with an API key is made and tested", async () => {
	const { page } = watched;
	await page.getByText("No connections yet").waitFor();
	await page.getByRole("button", { name: "New connection" }).first().click();
	await page.getByRole("button", { name: "Google" }).waitFor();
	await shoot(page, "connections-services");
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Name (required)").fill("shop");
	await page.getByLabel("Hosts").fill(address);
	await page.getByLabel("Name of place 1").fill("X-Key");
	await page.getByLabel("Value of place 1").fill("${{ secret.key }}");
	await page.getByLabel("Test URL").fill(`${address}/me`);
	await page.getByLabel("API key (required)").fill("let-me-in");
	await shoot(page, "connections-custom");
	await page.getByRole("button", { name: "Connect", exact: true }).click();
	await page.getByRole("heading", { name: "shop" }).waitFor();
	await page.getByRole("button", { name: "Test", exact: true }).click();
	await page.getByText("The connection works").waitFor();
	await page.getByText("Connected", { exact: true }).waitFor();
	await shoot(page, "connections-one");
	expect(await page.content()).not.toContain("let-me-in");
	await page.goto("/connections");
	await page.getByRole("link", { name: "shop" }).waitFor();
	await shoot(page, "connections-list");
	watched.check();
});
