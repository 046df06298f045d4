import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/templates"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("a template is found, opened and used", async () => {
	const { page } = watched;
	await shoot(page, "templates-gallery");
	await page.getByLabel("Search templates").fill("lines order");
	await page.getByRole("button", { name: "First steps" }).click();
	await page.getByRole("link", { name: "Work through the lines of an order" }).click();
	await page.getByRole("heading", { name: "Work through the lines of an order" }).waitFor();
	await page.getByRole("img", { name: /^Graph of 0 triggers and \d steps$/ }).waitFor();
	await shoot(page, "templates-one");
	await page.goBack();
	await expect.poll(() => new URL(page.url()).searchParams.get("category")).toBe("First steps");
	await page.goForward();
	await page.getByRole("button", { name: "Use this template" }).click();
	await page.waitForURL(/\/workflows\/wf_/);
	const id = new URL(page.url()).pathname.split("/").at(-1);
	const { source } = await server.call("GET", "/v1/templates/order-lines");
	expect(await server.call("GET", `/v1/workflows/${id}`)).toMatchObject({
		name: "Work through the lines of an order",
		state: "draft",
		source,
	});
	watched.check();
});

test("every template has a graph and can be used", async () => {
	const { page } = watched;
	const { data } = await server.call("GET", "/v1/templates");
	expect(data.length).toBeGreaterThan(3);
	for (const { name } of data) {
		await page.goto(`/templates/${name}`);
		await page.getByRole("img", { name: /^Graph of/ }).waitFor();
		await page.getByRole("button", { name: "Use this template" }).click();
		await page.waitForURL(/\/workflows\/wf_/);
	}
	watched.check();
});

test("an unknown template shows an error", async () => {
	const { page } = watched;
	watched.expect("404");
	await page.goto("/templates/none-of-them");
	await page.getByRole("button", { name: "Try again" }).waitFor();
	watched.check();
});
