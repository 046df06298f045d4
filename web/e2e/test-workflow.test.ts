import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched, write } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/workflows", { viewport: { width: 1440, height: 900 } }));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const order = {
	triggers: [
		{ id: "hook", type: "webhook" },
		{ id: "nightly", type: "schedule", cron: "0 3 * * *", timezone: "Europe/Paris" },
	],
	steps: [
		{
			id: "get",
			name: "Get the order",
			uses: "data.set",
			with: { values: { total: 120, lines: [{ sku: "a-1" }, { sku: "b-2" }], id: "${{ trigger.payload.id }}" } },
		},
		{ id: "greet", name: "Greet", uses: "data.set", with: { values: { text: "hello" } } },
		{
			id: "lines",
			name: "Each line",
			foreach: "steps.get.output.lines",
			steps: [{ id: "reserve", name: "Reserve", uses: "data.set", with: { values: { sku: "${{ item.sku }}" } } }],
		},
		{
			id: "count",
			name: "Count",
			uses: "code.js",
			with: { code: "console.log('counting'); return { total: input * 2 };", input: "${{ steps.get.output.total }}" },
		},
	],
};

/** Opens a new workflow with a step, or a trigger as `@id`, selected. */
async function opened(name: string, node: string): Promise<string> {
	const { id } = await server.call("POST", "/v1/workflows", { name });
	await server.call("PATCH", `/v1/workflows/${id}`, order);
	await watched.page.goto(`/workflows/${id}?step=${node}`);
	await field("/").first().waitFor();
	return id;
}

/** The fields whose pointers start with this one. */
const field = (pointer: string) => watched.page.locator(`[data-pointer^="${pointer}"]`);
const exactly = (pointer: string) => watched.page.locator(`[data-pointer="${pointer}"]`);
const node = (page: Page, id: string) => page.locator(`[data-node="${id}"]`);

/** Selects a step on the canvas, of which the test panel may cover a part. */
async function select(page: Page, id: string): Promise<void> {
	await page.getByRole("button", { name: "Zoom to fit" }).click();
	await node(page, id).click();
}

/** Runs a draft that nothing has started yet, so that it asks what it starts with. */
async function runFirst(page: Page): Promise<void> {
	await page.keyboard.press("Control+Enter");
	await page.getByText("Nothing has started this workflow yet.").waitFor();
	await page.getByRole("button", { name: "Run the draft" }).click();
	await page.getByText("draft run", { exact: true }).waitFor();
}

longTest("an expression field completes, previews and reports mistakes", async () => {
	const { page } = watched;
	await opened("Expressions", "count");
	const input = exactly("/steps/3/with/input");
	await input.getByText("Run Get the order to see a value").waitFor();
	expect(await input.locator(".text-failed").count()).toBe(0);

	await runFirst(page);
	await input.getByText("120").waitFor();

	const editor = input.locator(".cm-content");
	await editor.click();
	await page.keyboard.press("Control+a");
	await page.keyboard.type("${{ steps.get.output.");
	await page.getByRole("option", { name: /^lines/ }).waitFor();
	await shoot(page, "builder-completion");
	await page.keyboard.type("tot");
	await page.getByRole("option", { name: /^lines/ }).waitFor({ state: "detached" });
	const total = page.getByRole("option", { name: /^total/, selected: true });
	await total.waitFor();
	await expect
		.poll(async () => {
			// Right after the list has changed, Enter starts a new line instead.
			if (!(await total.isVisible())) {
				await page.keyboard.press("Control+a");
				await page.keyboard.type("${{ steps.get.output.tot");
				await total.waitFor();
			}
			await page.keyboard.press("Enter");
			return editor.textContent();
		})
		.toContain("steps.get.output.total");
	await page.keyboard.type(" + formatN");
	await page.getByRole("option", { name: /^formatNumber/ }).waitFor();
	await page.getByText("The number as people write it").waitFor();
	await shoot(page, "builder-completion-function");
	for (const _ of "formatN") await page.keyboard.press("Backspace");
	await input.locator(".cm-lintRange-error").waitFor();
	await input.locator("p.text-failed").waitFor();
	watched.check();
});

longTest("data is inserted from the tree, which shows its origin", async () => {
	const { page } = watched;
	await opened("Insert", "greet");
	const text = exactly("/steps/1/with/values/text");
	await text.getByRole("textbox", { name: /^Value/ }).fill("${{ 1 }}");
	await text.locator(".cm-content").waitFor();
	await text.getByRole("button", { name: "Insert data" }).click();
	await page.getByText("no data").first().waitFor();
	await shoot(page, "builder-data");
	await page.getByRole("button", { name: /^Insert trigger/ }).click();
	await expect.poll(() => text.locator(".cm-content").textContent()).toContain("trigger");
	watched.check();
});

test("a step is tested, its output pinned, and the pin used in a draft run", async () => {
	const { page } = watched;
	const id = await opened("Pins", "get");
	await select(page, "get");
	await page.keyboard.press("t");
	await page.getByRole("dialog").getByRole("button", { name: "Test step" }).click();
	await page.getByRole("button", { name: "Pin this output" }).waitFor();
	await page.getByText("Trigger data").waitFor();
	await page.getByRole("button", { name: "Pin this output" }).click();
	await page.getByRole("button", { name: "Edit pin" }).click();
	const dialog = page.getByRole("dialog");
	await dialog.locator(".cm-content").click();
	await page.keyboard.press("Control+a");
	await page.keyboard.type("nothing");
	await dialog.getByText("This is not valid JSON yet.").waitFor();
	await page.keyboard.press("Control+a");
	await page.keyboard.insertText('{"total": 7, "lines": [{"sku": "pinned"}]}');
	await dialog.getByRole("button", { name: "Pin", exact: true }).click();
	await dialog.waitFor({ state: "detached" });
	await shoot(page, "builder-test");

	await select(page, "count");
	await page.keyboard.press("t");
	await page.getByRole("dialog").getByRole("button", { name: "Test step" }).click();
	await page.getByText('"total"').first().waitFor();
	await expect.poll(() => page.getByRole("tabpanel").textContent()).toContain("14");
	await expect.poll(() => page.getByRole("tabpanel").textContent()).toMatch(/Get the order\s*pinned/);

	await runFirst(page);
	await select(page, "get");
	await page.getByText("pinned output", { exact: true }).waitFor();
	// The pin was not saved, and the draft run did not save it either.
	expect((await server.call("GET", `/v1/workflows/${id}`)).pinned).toEqual({});
	watched.check();
});

longTest("a draft run is shown live on the canvas, round by round", async () => {
	const { page } = watched;
	const id = await opened("Drawn", "reserve");
	await runFirst(page);
	const round = page.getByRole("combobox", { name: "Round of Each line" });
	await round.waitFor();
	await page.getByText('"b-2"').first().waitFor();
	await page.getByRole("button", { name: "Previous round of Each line" }).click();
	await page.getByText('"a-1"').first().waitFor();
	await shoot(page, "builder-run");
	const { data } = await server.call("GET", `/v1/workflows/${id}/runs`);
	expect(data).toHaveLength(1);
	expect((await server.call("GET", `/v1/runs/${data[0].id}`)).draft).toBe(true);
	await page.getByRole("button", { name: "Remove the run from the canvas" }).click();
	await page.getByText("Click a step to see its input and output.").waitFor();
	watched.check();
});

longTest("a schedule shows its next times", async () => {
	const { page } = watched;
	await opened("Times", "@nightly");
	await page.getByText("At 03:00", { exact: true }).waitFor();
	await page.getByRole("combobox", { name: "Repeat" }).selectOption("week");
	await page.getByText("At 03:00, only on Monday").waitFor();
	await expect.poll(() => page.getByRole("listitem").filter({ hasText: "03:00" }).count()).toBe(5);
	await shoot(page, "builder-schedule");
	watched.check();
});

test("a draft listens for a test call, whose data its first run starts with", async () => {
	const { page } = watched;
	const id = await opened("Listen", "@hook");
	const { data } = await server.call("GET", `/v1/workflows/${id}/triggers`);
	const { url } = data.find((trigger: { id: string }) => trigger.id === "hook");
	const call = async (body: string) => {
		const headers = { "Content-Type": "application/json", "X-Shop": "acme" };
		return (await fetch(url, { method: "POST", headers, body })).status;
	};
	await page.getByText("No calls yet.").waitFor();
	await page.getByText(`curl -X POST '${url}'`).waitFor();
	// The open page shows calls live.
	expect(await call('{"id": "too early"}')).toBe(404);
	await page.getByText("Rejected: the workflow is not active").waitFor();
	await page.getByRole("button", { name: "Listen for a test call" }).click();
	await page.getByText("Waiting for a call").waitFor();
	expect(await call('{"id": ')).toBe(400);
	await page.getByText("Rejected: the body is not valid JSON").waitFor();
	await shoot(page, "builder-listening");
	expect(await call('{"id": "from outside"}')).toBe(202);
	await page.getByText("in use", { exact: true }).waitFor();
	await page.getByRole("button", { name: "Pin it" }).click();
	await page.getByRole("button", { name: "Unpin" }).waitFor();
	await shoot(page, "builder-webhook");
	await page.keyboard.press("Control+s");
	await page.getByRole("button", { name: "Saved", exact: true }).waitFor();
	const stored = await server.call("GET", `/v1/workflows/${id}`);
	expect(stored.pinned["@hook"]).toMatchObject({ payload: { id: "from outside" }, headers: { "x-shop": "acme" } });

	// The pin is still there when the page is opened again.
	await page.goto(`/workflows/${id}?step=get`);
	await field("/").first().waitFor();
	await page.keyboard.press("Control+Enter");
	await page.getByText("draft run", { exact: true }).waitFor();
	await page.getByText('"from outside"').first().waitFor();
	const { data: runs } = await server.call("GET", `/v1/workflows/${id}/runs`);
	expect(runs).toHaveLength(1);
	const run = await server.call("GET", `/v1/runs/${runs[0].id}`);
	expect(run.trigger).toMatchObject({ type: "webhook", id: "hook", test: true, headers: { "x-shop": "acme" } });
	watched.check();
});

longTest("a trigger is tested with data that people enter", async () => {
	const { page } = watched;
	const id = await opened("Enter data", "@hook");
	await page.getByRole("button", { name: "Test this trigger…" }).click();
	const dialog = page.getByRole("dialog");
	await write(dialog.locator(".cm-content"), '{"id": "by hand"}');
	await dialog.getByRole("button", { name: "Start run" }).click();
	await page.getByRole("link", { name: "Open run" }).waitFor();
	const { data } = await server.call("GET", `/v1/workflows/${id}/runs`);
	const run = await server.call("GET", `/v1/runs/${data[0].id}`);
	expect(run.trigger).toMatchObject({ id: "hook", test: true, payload: { id: "by hand" } });
	watched.check();
});

longTest("the duration of a waiting step keeps counting in the builder", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/workflows", { name: "Ask" });
	const steps = [{ id: "ask", name: "Ask", uses: "flow.approval", with: { message: "Ship it?" } }];
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	await page.goto(`/workflows/${id}?step=ask`);
	await field("/").first().waitFor();
	await page.keyboard.press("Control+Enter");
	const took = node(page, "ask").getByText(/^[\d.]+ (ms|s)$/);
	await took.waitFor();
	const before = await took.textContent();
	await expect.poll(() => took.textContent(), { timeout: 60_000 }).not.toBe(before);
	watched.check();
});

longTest("renaming a step rewrites its references, and one undo reverts it", async () => {
	const { page } = watched;
	await opened("Rename", "get");
	const name = page.getByRole("textbox", { name: "ID", exact: true });
	await name.fill("order");
	await name.press("Enter");
	await select(page, "count");
	await expect
		.poll(() => exactly("/steps/3/with/input").locator(".cm-content").textContent())
		.toContain("steps.order.output");
	await page.getByRole("button", { name: "Undo" }).click();
	await expect
		.poll(() => exactly("/steps/3/with/input").locator(".cm-content").textContent())
		.toContain("steps.get.output");
	watched.check();
});
