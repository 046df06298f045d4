import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openPage, openSignedIn, shoot, type Watched, waitForFocus, write } from "./browser";
import { longTest as test } from "./lane";
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

const row = (name: string) => watched.page.getByRole("row", { name: new RegExp(name) });

async function choose(name: string, item: string | RegExp) {
	await watched.page.getByRole("button", { name: `More actions for ${name}`, exact: true }).click();
	await watched.page.getByRole("menuitem", { name: item }).click();
}

test("a new workflow opens in the builder", async () => {
	const { page } = watched;
	await page.getByText("No workflows yet. Start from a template or an empty canvas.").waitFor();
	await page.keyboard.press("n");
	await waitForFocus(page.getByRole("dialog").getByLabel("Name"));
	await page.keyboard.type("Greet a customer");
	await page.keyboard.press("Enter");
	await page.waitForURL(/\/workflows\/wf_/);
	watched.check();
});

const broken = "name: Say hello\nsteps:\n  - id: hello\n    uses: data.sett\n    with: {values: {a: 1}}\n";

test("an invalid import shows the position of the problem and creates nothing; fixed, it becomes a draft", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByRole("button", { name: "Import" }).click();
	await page.locator("input[type=file]").setInputFiles({
		name: "hello.yaml",
		mimeType: "application/yaml",
		buffer: Buffer.from(broken),
	});
	await page.getByText("hello.yaml").waitFor();
	watched.expect("422");
	const submit = page.getByRole("dialog").getByRole("button", { name: "Import" });
	await submit.click();
	await page.getByRole("button", { name: "Line 4, column 11" }).waitFor();
	await page.locator(".cm-lintRange-error").waitFor();
	await shoot(page, "workflows-import");
	expect((await server.call("GET", "/v1/workflows")).data).toHaveLength(1);
	const { data: entries } = await server.call("GET", "/v1/audit");
	const about = entries.filter(({ action }: { action: string }) => action.startsWith("workflow."));
	expect(about).toMatchObject([{ action: "workflow.created", details: { name: "Greet a customer" } }]);
	await page.getByRole("button", { name: "Line 4, column 11" }).click();
	await waitForFocus(page.getByRole("textbox", { name: "Workflow definition" }));
	await page.keyboard.press("End");
	await page.keyboard.press("Backspace");
	await submit.click();
	await page.waitForURL(/\/workflows\/wf_/);
	const [made] = (await server.call("GET", "/v1/workflows")).data;
	expect(await server.call("GET", `/v1/workflows/${made.id}`)).toMatchObject({
		name: "Say hello",
		version: 1,
		source: broken.replace("data.sett", "data.set"),
	});
	watched.check();
});

test("a run starts with the typed payload, and the list updates", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await page.getByRole("button", { name: "Run Say hello" }).click();
	const editor = page.getByRole("textbox", { name: "Payload" });
	await write(editor, "[1]");
	await page.getByRole("dialog").getByRole("button", { name: "Run" }).click();
	await page.getByText(/The payload must be an object/).waitFor();
	await write(editor, '{"name": "Ada"}');
	await page.getByRole("dialog").getByRole("button", { name: "Run" }).click();
	await page.waitForURL(/\/runs\/run_/);
	const id = new URL(page.url()).pathname.split("/").at(-1);
	expect((await server.call("GET", `/v1/runs/${id}`)).trigger.payload).toEqual({ name: "Ada" });

	await page.goto("/workflows");
	await row("Say hello").getByRole("img", { name: "Last run: 1 succeeded" }).waitFor();
	const [workflow] = (await server.call("GET", "/v1/workflows")).data;
	await server.call("POST", `/v1/workflows/${workflow.id}/runs`, {});
	await row("Say hello").getByRole("img", { name: "Last 2 runs: 2 succeeded" }).waitFor();
	await shoot(page, "workflows-list");
});

test("an active workflow cannot be deleted; it can be duplicated, paused and then deleted", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	await choose("Say hello", "Activate");
	await row("^Say hello Active").waitFor();
	watched.expect("409");
	await choose("Say hello", /Delete/);
	await page.getByRole("dialog").getByRole("button", { name: "Delete workflow" }).click();
	await page
		.getByRole("dialog")
		.getByText(/pause it/i)
		.waitFor();
	await shoot(page, "workflows-refused");
	await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();

	await choose("Say hello", "Duplicate");
	await row("^Say hello \\(copy\\) Draft").waitFor();
	const [copy] = (await server.call("GET", "/v1/workflows")).data;
	expect(await server.call("GET", `/v1/workflows/${copy.id}`)).toMatchObject({
		name: "Say hello (copy)",
		steps: [{ id: "hello", uses: "data.set" }],
	});

	await choose("Say hello", "Pause");
	await row("^Say hello Paused").waitFor();
	await choose("Say hello", /Delete/);
	await page.getByRole("dialog").getByRole("button", { name: "Delete workflow" }).click();
	await row("^Say hello Paused").waitFor({ state: "detached" });
	watched.check();
});

test("a workflow is downloaded as YAML", async () => {
	const { page } = watched;
	await page.goto("/workflows");
	const saved = page.waitForEvent("download");
	await choose("Say hello (copy)", "Download YAML");
	expect((await saved).suggestedFilename()).toBe("say-hello-copy.yaml");
	watched.check();
});

test("two hundred workflows with long names fit, and the search finds the last one", async () => {
	const { page } = watched;
	for (let n = 0; n < 200; n++) await server.call("POST", "/v1/workflows", { name: `${n} ${"long ".repeat(30)}` });
	await page.goto("/workflows?text=greet");
	await row("Greet a customer").waitFor();
	await expect.poll(() => page.getByRole("row").count()).toBe(2);
	await page.goto("/workflows?state=active");
	await page.getByText("No workflows match").waitFor();
	await page.getByRole("button", { name: "Clear filters" }).click();
	await row("^199 long").waitFor();
	await page.setViewportSize({ width: 360, height: 740 });
	await shoot(page, "workflows-narrow");
	expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
	await page.setViewportSize({ width: 1280, height: 800 });
	watched.check();
});

test("a viewer sees no actions that would be rejected", async () => {
	const { link } = await server.call("POST", "/v1/invitations", { email: "eve@example.com", role: "viewer" });
	const viewer = await openPage(browser, server);
	const token = new URL(link).hash.replace("#token=", "");
	const data = { token, name: "Eve", password: "only looking around" };
	expect((await viewer.context.request.post("/ui/v1/invitations/accept", { data })).status()).toBe(201);
	for (const path of ["/workflows", "/webhooks", "/secrets"]) {
		await viewer.page.goto(`${path}?new=1`);
		await viewer.page.getByRole("heading", { level: 1 }).waitFor();
		await viewer.page.getByRole("status", { name: "Loading" }).waitFor({ state: "detached" });
		expect(await viewer.page.getByRole("button", { name: /^New/ }).count()).toBe(0);
		expect(await viewer.page.getByRole("dialog").count()).toBe(0);
	}
	await viewer.page.goto("/keys");
	await viewer.page.getByText("Your role does not allow this").waitFor();
	viewer.check();
	await viewer.close();
});
