import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage, owner, shoot, waitForFocus } from "./browser";
import { longTest } from "./lane";
import { type Server, startServer } from "./server";

let server: Server;
let browser: Browser;

beforeAll(async () => {
	server = await startServer();
	browser = await openBrowser();
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("from the link to a successful run, using only the keyboard", async () => {
	const watched = await openPage(browser, server);
	const { page } = watched;
	await page.goto(server.welcome);
	await waitForFocus(page.getByLabel("Your name"));
	await page.keyboard.type(owner.name);
	await page.keyboard.press("Tab");
	await page.keyboard.type(owner.email);
	await page.keyboard.press("Tab");
	await page.keyboard.type(owner.password);
	await page.keyboard.press("Enter");

	await page.getByRole("heading", { name: "Create your first workflow" }).waitFor();
	const choices = page.getByRole("button", { name: /^Create and run/ });
	await expect.poll(() => choices.count()).toBe(3);
	await shoot(page, "first");
	await choices.first().focus();
	await page.keyboard.press("Enter");

	await page.waitForURL("**/runs/run_*");
	await page.getByText("Succeeded").first().waitFor();
	await shoot(page, "first-run");
	watched.check();
});

longTest("each first-run template succeeds", async () => {
	const { data } = await server.call("GET", "/v1/templates");
	const first = data.filter((one: { first_run: boolean }) => one.first_run);
	expect(first).toHaveLength(3);
	for (const { name, title } of first) {
		const { source, payload } = await server.call("GET", `/v1/templates/${name}`);
		const { id } = await server.call("POST", "/v1/workflows", { name: title });
		await server.call("PATCH", `/v1/workflows/${id}`, { source });
		const run = await server.call("POST", `/v1/workflows/${id}/runs`, { payload });
		await expect
			.poll(async () => (await server.call("GET", `/v1/runs/${run.id}`)).status, { timeout: 60_000 })
			.not.toBe("running");
		expect((await server.call("GET", `/v1/runs/${run.id}`)).status, name).toBe("succeeded");
	}
});
