import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openBrowser, openPage, owner, shoot, type Watched } from "./browser";
import { startIdentityProvider } from "./identity-provider";
import { longTest } from "./lane";
import { type Server, startServer } from "./server";

let server: Server;
let browser: Browser;
const open: Watched[] = [];

beforeAll(async () => {
	server = await startServer();
	browser = await openBrowser();
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

afterEach(async () => {
	for (const watched of open.splice(0)) {
		watched.check();
		await watched.close();
	}
});

async function visit(): Promise<Watched> {
	const watched = await openPage(browser, server);
	// The session request returns 401 until the user is signed in.
	watched.expect(/status of 401.*\/ui\/v1\/session/);
	open.push(watched);
	return watched;
}

longTest("an incomplete link shows an error", async () => {
	const { page } = await visit();
	await page.goto("/welcome");
	await page.getByRole("heading", { name: "This link does not work" }).waitFor();
	await shoot(page, "dead-link");
});

test("the first user creates the owner account, signs out, and returns to the same page", async () => {
	const watched = await visit();
	const { page } = watched;
	await page.goto(server.welcome);
	await page.getByLabel("Your name").waitFor();
	await expect.poll(() => page.url()).not.toContain("token");
	await shoot(page, "welcome");

	watched.expect(/status of 400.*\/ui\/v1\/welcome/);
	await page.getByLabel("Your name").fill(owner.name);
	await page.getByLabel("Email address").fill(owner.email);
	await page.getByLabel("Password", { exact: true }).fill("short");
	await page.getByRole("button", { name: "Create account" }).click();
	await page.locator("[aria-invalid=true]").waitFor();

	await page.getByLabel("Your name").fill("");
	await page.getByLabel("Email address").fill("ada");
	await page.getByRole("button", { name: "Create account" }).click();
	await expect.poll(() => page.locator("[aria-invalid=true]").count()).toBe(3);
	await shoot(page, "welcome-refused");

	// A reload loses what was typed, but not the link.
	await page.reload();
	await page.getByLabel("Your name").fill(owner.name);
	await page.getByLabel("Email address").fill(owner.email);
	await page.getByLabel("Password", { exact: true }).fill(owner.password);
	await page.keyboard.press("Enter");
	await page.waitForURL("**/first");

	await page.goto("/runs?status=failed");
	// Requests made while signing out are rejected.
	watched.expect(/status of 401.*\/ui\/v1\//);
	await page.getByRole("button", { name: /Ada/ }).click();
	await page.getByRole("menuitem", { name: "Sign out" }).click();
	await page.waitForURL("**/sign-in");

	await page.goto("/runs?status=failed");
	await page.waitForURL("**/sign-in?next=*");
	await shoot(page, "sign-in");
	watched.expect(/status of 401.*\/ui\/v1\/session/);
	await page.getByLabel("Email address").fill(owner.email);
	await page.getByLabel("Password", { exact: true }).fill("not the password");
	await page.keyboard.press("Enter");
	await page.getByRole("alert").waitFor();
	await shoot(page, "sign-in-refused");
	await page.getByLabel("Password", { exact: true }).fill(owner.password);
	await page.keyboard.press("Enter");
	await page.waitForURL("**/runs?status=failed");
});

longTest("a used link does not work", async () => {
	const watched = await visit();
	watched.expect(/status of 404.*\/ui\/v1\/welcome/);
	await watched.page.goto(server.welcome);
	await watched.page.getByLabel("Your name").fill("Mallory");
	await watched.page.getByLabel("Email address").fill("mallory@example.com");
	await watched.page.getByLabel("Password", { exact: true }).fill("correct horse battery");
	await watched.page.keyboard.press("Enter");
	await watched.page.getByRole("heading", { name: "This link does not work" }).waitFor();
});

longTest("signing in does not redirect to another site", async () => {
	const { page } = await visit();
	await page.goto("/sign-in?next=//example.com/");
	await page.getByLabel("Email address").fill(owner.email);
	await page.getByLabel("Password", { exact: true }).fill(owner.password);
	await page.keyboard.press("Enter");
	await page.waitForURL(`${server.url}/workflows`);
});

longTest("an invited viewer joins and sees what the role does not allow", async () => {
	const invitation = await server.call("POST", "/v1/invitations", { email: "grace@example.com", role: "viewer" });
	const { page } = await visit();
	await page.goto(invitation.link);
	await page.getByRole("heading", { name: /^Join / }).waitFor();
	await shoot(page, "invitation");
	await page.getByLabel("Your name").fill("Grace Hopper");
	await page.getByLabel("Choose a password").fill("correct horse battery");
	await page.keyboard.press("Enter");
	await page.waitForURL("**/workflows");
	await page.goto("/keys");
	await page.getByText("Your role does not allow this").waitFor();
	await shoot(page, "forbidden");
});

longTest("an invited person joins with the identity provider", async () => {
	const provider = await startIdentityProvider("stepmill");
	const joined = await startServer(["--oidc-issuer", provider.url, "--oidc-client-id", "stepmill"]);
	const watched = await openPage(browser, joined);
	try {
		const { page } = watched;
		watched.expect(/status of 401.*\/ui\/v1\/session/);
		watched.expect(new RegExp(`^request: ${provider.url}/authorize`));
		const invite = () => joined.call("POST", "/v1/invitations", { email: "grace@example.com", role: "editor" });
		const join = page.getByRole("button", { name: "Join with your identity provider" });

		provider.person = { sub: "2", email: "stranger@example.com", name: "Stranger" };
		await page.goto((await invite()).link);
		await join.waitFor();
		await shoot(page, "invitation-with-provider");
		await join.click();
		await page.getByRole("alert").filter({ hasText: "another email address" }).waitFor();
		await shoot(page, "invitation-other-address");

		provider.person = { sub: "1", email: "grace@example.com", name: "Grace Hopper" };
		await join.click();
		await page.waitForURL("**/workflows");
		await page.getByRole("button", { name: /Grace Hopper/ }).waitFor();
	} finally {
		watched.check();
		await watched.close();
		await joined.stop();
		provider.close();
	}
});
