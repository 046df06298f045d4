import { generateKeyPairSync } from "node:crypto";
import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

/**
 * Stands for the account, as the services of integrations are at addresses that no journey can reach: test/services
 * runs the server with them.
 */
async function answer(route: Route): Promise<void> {
	const { input } = route.request().postDataJSON();
	const options =
		input === "sheet"
			? [
					{ value: 0, label: "Orders" },
					{ value: 1593, label: "Customers" },
				]
			: [{ value: "1aB", label: "Sales 2026" }];
	return route.fulfill({ status: 200, json: { options, fields: null, more: false } });
}

const { privateKey: private_key } = generateKeyPairSync("rsa", {
	modulusLength: 2048,
	privateKeyEncoding: { type: "pkcs8", format: "pem" },
	publicKeyEncoding: { type: "spki", format: "pem" },
});

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/templates"));
	await watched.page.route("**/ui/v1/connections/*/options", answer);
	await server.call("POST", "/v1/connections", {
		name: "office",
		integration: "google",
		auth: "service_account",
		fields: {
			key: JSON.stringify({ type: "service_account", client_email: "a@b.test", private_key }),
			services: "gmail",
		},
	});
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const dialog = () => watched.page.getByRole("dialog");

test("a template asks for what it needs, and becomes a draft", async () => {
	const { page } = watched;
	await page.goto("/templates/sheet-report");
	await page.getByRole("button", { name: "Use this template" }).click();
	await expect.poll(() => page.getByRole("combobox", { name: /^Google account/ }).inputValue()).toBe("office");
	await shoot(page, "templates-form");

	// What is missing is said at its field.
	watched.expect("400");
	await page.getByLabel(/^Recipient/).fill("ada");
	await page.keyboard.press("Enter");
	await page.getByText("Must be an email address, such as ada@acme.test.").waitFor();
	await expect.poll(() => page.getByText("Is required.", { exact: true }).count()).toBe(2);
	await shoot(page, "templates-form-errors");

	// By keyboard: choose from the account, then create the draft.
	await page.getByRole("combobox", { name: /^Spreadsheet/ }).focus();
	await page.getByRole("option", { name: /Sales 2026/ }).waitFor();
	await shoot(page, "templates-form-list");
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.getByRole("combobox", { name: /^Sheet/ }).focus();
	await page.getByRole("option", { name: /Orders/ }).waitFor();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await page.getByLabel(/^Recipient/).fill("ada@acme.test");
	await page.getByRole("button", { name: "Create workflow" }).click();
	await page.waitForURL(/\/workflows\/wf_/);
	await page.getByText("Mail the report").first().waitFor();
	const id = new URL(page.url()).pathname.split("/").at(-1);
	const made = await server.call("GET", `/v1/workflows/${id}`);
	const { description } = await server.call("GET", "/v1/templates/sheet-report");
	expect(made).toMatchObject({ name: "Mail a weekly report from a sheet", description, state: "draft" });
	expect(made.steps[0]).toMatchObject({ connection: "office", with: { spreadsheet: "1aB", sheet: 0 } });
	expect(made.source).toContain("# At eight on Monday morning.");
	watched.check();
});

test("a connection is made in the form", async () => {
	const { page } = watched;
	await page.goto("/templates/mail-to-slack");
	await page.getByRole("button", { name: "Use this template" }).click();
	await page.getByRole("button", { name: "New connection…" }).last().click();
	const connect = page.getByRole("dialog", { name: /Slack/ });
	await connect.getByLabel("Authenticate with").selectOption("bearer");
	await connect.getByLabel(/^Token/).fill("xoxb-a-token");
	await connect.getByRole("button", { name: "Connect" }).click();
	await expect.poll(() => page.getByRole("combobox", { name: /^Slack workspace/ }).inputValue()).toBe("slack");
	await page.keyboard.press("Escape");
	await dialog().waitFor({ state: "detached" });
	watched.check();
});

test("an address that is left from an example is a warning", async () => {
	const { page } = watched;
	const { id } = await server.call("POST", "/v1/workflows", { name: "Left" });
	const steps = [
		{ id: "send", name: "Send the report", uses: "http.request", with: { url: "https://api.example.com/reports" } },
	];
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	await page.goto(`/workflows/${id}`);
	await page.getByRole("button", { name: "1 warning" }).waitFor();
	await page.getByRole("button", { name: "Activate" }).click();
	await page
		.getByText("The workflow is active. Step Send the report still has the placeholder address api.example.com.")
		.waitFor();
	await shoot(page, "templates-warning");
	await page.getByRole("button", { name: "Show warnings" }).click();
	await page.getByText("Warning: Step Send the report still has").waitFor();
	await shoot(page, "templates-warning-listed");
	watched.check();
});

longTest("the form fits a phone", async () => {
	const { page } = watched;
	await page.setViewportSize({ width: 360, height: 740 });
	try {
		await page.goto("/templates/sheet-report");
		await page.getByRole("button", { name: "Use this template" }).waitFor();
		await shoot(page, "templates-one-360");
		await page.getByRole("button", { name: "Use this template" }).click();
		await dialog().waitFor();
		await shoot(page, "templates-form-360");
		expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
	} finally {
		await page.setViewportSize({ width: 1440, height: 900 });
	}
	watched.check();
});

longTest("a template is found, opened and used", async () => {
	const { page } = watched;
	await page.goto("/templates");
	await page.getByRole("link", { name: "Say hello" }).waitFor();
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

longTest("every template has a graph, and can be used or asks", async () => {
	const { page } = watched;
	const { data } = await server.call("GET", "/v1/templates?limit=100");
	expect(data.length).toBeGreaterThan(30);
	for (const { name, inputs } of data) {
		await page.goto(`/templates/${name}`);
		await page.getByRole("img", { name: /^Graph of/ }).waitFor();
		await page.getByRole("button", { name: "Use this template" }).click();
		if (inputs.length === 0) {
			await page.waitForURL(/\/workflows\/wf_/);
			continue;
		}
		for (const { title } of inputs) await dialog().getByText(title).first().waitFor();
	}
	watched.check();
});

longTest("an unknown template shows an error", async () => {
	const { page } = watched;
	watched.expect("404");
	await page.goto("/templates/none-of-them");
	await page.getByRole("button", { name: "Try again" }).waitFor();
	watched.check();
});
