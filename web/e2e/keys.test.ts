import { execFileSync } from "node:child_process";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched, waitForFocus } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/keys"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("a key is created, used with its example, and revoked", async () => {
	const { page } = watched;
	await server.call("POST", "/v1/workflows", { name: "Greet a customer" });
	await page.getByRole("button", { name: "New API key" }).click();
	await page.getByLabel("Name").fill("Nightly import");
	await shoot(page, "keys-new");
	await page.getByRole("button", { name: "Create key" }).click();

	const key = (await page.getByRole("group", { name: "API key" }).textContent()) ?? "";
	expect(key).toMatch(/^smk_\w{8}_\w{46}$/);
	const example = (await page.getByRole("group", { name: "cURL example" }).textContent()) ?? "";
	expect(example).toContain(key);
	await shoot(page, "keys-made");
	const answer = JSON.parse(execFileSync("sh", ["-c", example], { encoding: "utf8" }));
	expect(answer.data).toMatchObject([{ name: "Greet a customer" }]);

	const write = () =>
		fetch(`${server.url}/v1/workflows`, {
			method: "POST",
			headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
			body: '{"name": "No"}',
		});
	expect((await write()).status).toBe(403);

	await page.getByRole("button", { name: "I have stored it" }).click();
	const table = page.getByRole("table", { name: "API keys" });
	await table.getByText("Nightly import").waitFor();
	await expect.poll(() => page.getByText(key).count()).toBe(0);
	await shoot(page, "keys-list");
	await page.getByRole("button", { name: "Revoke Nightly import" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
	await table.getByText("Nightly import").waitFor({ state: "detached" });
	await expect.poll(async () => (await write()).status, { timeout: 60_000 }).toBe(401);
	watched.check();
});

longTest("a key is created using only the keyboard", async () => {
	const { page } = watched;
	await page.goto("/keys");
	await page.getByRole("heading", { name: "API keys" }).waitFor();
	await page.keyboard.press("n");
	await waitForFocus(page.getByRole("dialog", { name: "New API key" }).getByLabel("Name"));
	await page.keyboard.type("By keyboard");
	await page.keyboard.press("Enter");
	const value = page.getByRole("group", { name: "API key" });
	await value.waitFor();
	// The key cannot be shown again, so only the dialog's own button closes it.
	await page.keyboard.press("Escape");
	await page.mouse.click(5, 5);
	await page.keyboard.press("Control+k");
	await page.keyboard.press("Escape");
	expect(await value.isVisible()).toBe(true);
	expect(await page.getByRole("dialog").getByRole("button", { name: "Close" }).count()).toBe(0);
	await page.getByRole("button", { name: "I have stored it" }).focus();
	await page.keyboard.press("Enter");
	await page.getByRole("dialog").waitFor({ state: "detached" });
	await page.getByRole("table", { name: "API keys" }).getByText("By keyboard").waitFor();
	await expect.poll(() => new URL(page.url()).search).toBe("");
	watched.check();
});
