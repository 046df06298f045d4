import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openSignedIn, shoot, type Watched, write } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/secrets"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("a secret is created, not overwritten by accident, and never shown again", async () => {
	const { page } = watched;
	await page.getByText("No secrets yet").waitFor();
	watched.expect("404");
	for (const value of ["hunter22", "another one"]) {
		await page.goto("/secrets?new=secret");
		await page.getByLabel("Name").fill("shop_token");
		await page.getByRole("textbox", { name: "Value" }).fill(value);
		await page.getByRole("button", { name: "Save secret" }).click();
		if (value === "hunter22") await page.getByRole("table").getByText("shop_token").waitFor();
	}
	await page.getByText("“shop_token” already exists. Change its value in the list.").waitFor();
	await shoot(page, "secrets-new");
	await page.getByRole("button", { name: "Cancel" }).click();
	await page.getByRole("button", { name: "Replace shop_token" }).click();
	await page.getByRole("textbox", { name: "Value" }).fill("no");
	watched.expect("400");
	await page.getByRole("button", { name: "Replace value" }).click();
	await page
		.getByRole("dialog")
		.getByText(/4 characters/)
		.nth(1)
		.waitFor();
	await page.getByRole("textbox", { name: "Value" }).fill("hunter33");
	await page.getByRole("button", { name: "Replace value" }).click();
	await page.getByRole("dialog").waitFor({ state: "detached" });
	await shoot(page, "secrets-list");
	expect(await page.content()).not.toContain("hunter");
	await page.getByRole("button", { name: "Delete shop_token" }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Delete secret" }).click();
	await page.getByText("No secrets yet").waitFor();
	watched.check();
});

test("a variable holds any JSON", async () => {
	const { page } = watched;
	await page.goto("/secrets?tab=variables");
	await page.getByRole("button", { name: "New variable" }).first().click();
	await page.getByLabel("Name").fill("region");
	const value = page.getByRole("textbox", { name: "Value" });
	await write(value, "eu-west");
	await page.getByRole("button", { name: "Save variable" }).click();
	await page.getByText('This is not valid JSON. Put text in quotes: "eu-west"').waitFor();
	await write(value, '{"region": "eu-west", "shops": [1, 2]}');
	await page.getByRole("button", { name: "Save variable" }).click();
	await page.getByRole("cell", { name: '{"region":"eu-west","shops":[1,2]}', exact: true }).waitFor();
	expect(await server.call("GET", "/v1/variables/region")).toMatchObject({
		value: { region: "eu-west", shops: [1, 2] },
	});
	await shoot(page, "variables-list");
	await page.getByRole("button", { name: "Edit region" }).click();
	await write(value, "3");
	await page.getByRole("button", { name: "Save variable" }).click();
	await expect.poll(async () => (await server.call("GET", "/v1/variables/region")).value).toBe(3);
	watched.check();
});
