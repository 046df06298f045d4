import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { openPage, openSignedIn, shoot, type Watched } from "./browser";
import { longTest as test } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn());
	const { id } = await server.call("POST", "/v1/workflows", { name: "Nightly report" });
	for (let i = 0; i < 12; i++) await server.call("POST", `/v1/workflows/${id}/runs`, {});
	const steps = [{ id: "stop", uses: "flow.stop", with: { status: "failed", message: "no" } }];
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	for (let i = 0; i < 3; i++) await server.call("POST", `/v1/workflows/${id}/runs`, {});
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

test("an invited member joins with the given role and can be removed", async () => {
	const { page } = watched;
	await page.goto("/settings/members");
	await page.getByRole("button", { name: "Invite" }).click();
	await page.getByLabel("Email address").fill("grace@example.com");
	await page.getByLabel("Role", { exact: true }).selectOption("operator");
	await page.getByRole("button", { name: "Create link" }).click();
	const link = (await page.getByText(/\/invitation#token=/).textContent()) ?? "";
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "I have copied it" }).click();
	await page.getByRole("table", { name: "Pending invitations" }).getByText("grace@example.com").waitFor();
	await shoot(page, "settings-members-invited");

	const guest = await openPage(browser, server);
	await guest.page.goto(link);
	await guest.page.getByLabel("Your name").fill("Grace Hopper");
	await guest.page.getByLabel("Choose a password").fill("a compiler of her own");
	await guest.page.getByRole("button", { name: /join/i }).click();
	await guest.page.getByRole("heading", { name: "Workflows" }).waitFor();
	await guest.page.goto("/settings/members");
	await guest.page.getByText("Your role does not allow this").waitFor();
	guest.check();

	await page.reload();
	await page.getByRole("button", { name: "Remove Grace Hopper" }).click();
	await page.getByRole("alertdialog").or(page.getByRole("dialog")).getByRole("button", { name: "Remove" }).click();
	await page.getByLabel("Role of Grace Hopper").waitFor({ state: "detached" });
	await expect
		.poll(async () => (await guest.context.request.get("/ui/v1/session")).status(), { timeout: 60_000 })
		.toBe(401);
	await guest.close();
	watched.check();
});

test("the last owner cannot lose the role", async () => {
	const { page } = watched;
	await page.goto("/settings/members");
	watched.expect("409");
	await page.getByLabel("Role of Ada Lovelace").selectOption("viewer");
	await page.getByText(/is the only owner of the workspace/).waitFor();
	await expect.poll(() => page.getByLabel("Role of Ada Lovelace").inputValue()).toBe("owner");
	watched.check();
});

test("usage shows the finished runs", async () => {
	const { page } = watched;
	const running = async () => (await server.call("GET", "/v1/runs?status=running")).data;
	await expect.poll(running).toEqual([]);
	await page.goto("/settings/usage");
	await page.getByRole("img", { name: /Finished runs\. Succeeded: 12, Failed: 3/ }).waitFor();
	await page.locator(".uplot canvas").first().waitFor();
	await shoot(page, "settings-usage-runs");
	watched.check();
});

test("the audit log can be filtered by action", async () => {
	const { page } = watched;
	await page.goto("/settings/audit?action=invitation.created");
	await page.getByRole("row").filter({ hasText: "Invitation created" }).first().waitFor();
	await page.getByLabel("Action").selectOption("workflow.created");
	await page.getByRole("row").filter({ hasText: "Workflow created" }).first().waitFor();
	await shoot(page, "settings-audit-entries");
	watched.check();
});

test("the API reference fills a key into its examples", async () => {
	const { page } = watched;
	await page.goto("/reference?operation=startRun");
	await page.getByRole("heading", { name: "Start a run" }).waitFor();
	await page.getByRole("button", { name: "Create a key for me" }).click();
	const command = page.getByText(/Authorization: Bearer smk_/).first();
	await command.waitFor();
	const key = /smk_\w+/.exec((await command.textContent()) ?? "")?.[0];
	const answer = await fetch(`${server.url}/v1/workflows`, { headers: { Authorization: `Bearer ${key}` } });
	expect(answer.status).toBe(200);
	await shoot(page, "reference-operation");
	watched.check();
});

test("signing out everywhere also ends the current session", async () => {
	const { page } = watched;
	await page.goto("/settings/account");
	await page.getByRole("button", { name: "Sign out everywhere" }).click();
	await page.getByRole("button", { name: "Sign out", exact: true }).click();
	await page.waitForURL("**/sign-in**");
	watched.expect("401");
	await page.goto("/runs");
	await page.waitForURL("**/sign-in**");
});
