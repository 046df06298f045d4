import type { Browser, Route } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;
/** What the builder has asked the account for. */
const asked: { input: string; with: Record<string, unknown>; search?: string }[] = [];
/** Whether the service is out of order. */
let broken = false;

const databases = ["Tasks", "Projects", "Customers", "Meeting notes", "Reading list"];
const option = (label: string) => ({ value: `db-${label.toLowerCase().replace(" ", "-")}`, label });
const status = ["Open", "In progress", "Done"].map((label) => ({ value: label, label }));
const field = (name: string, type = "string", options: unknown = null) => ({
	name,
	title: name,
	type,
	required: name === "Name",
	options,
});

/**
 * Stands for the account. The services of integrations are at addresses of their own, which no journey can reach:
 * test/services tests the server with them.
 */
async function answer(route: Route): Promise<void> {
	const body = route.request().postDataJSON();
	asked.push(body);
	if (broken) {
		const error = { code: "service_failed", message: "Notion: The service is out of order", request_id: "req_1" };
		return route.fulfill({ status: 422, json: { error } });
	}
	const fields = [field("Name"), field("Status", "string", status), field("Due", "time"), field("Done", "boolean")];
	const json =
		body.input === "properties"
			? { options: null, fields, more: false }
			: { options: databases.map(option), fields: null, more: false };
	return route.fulfill({ status: 200, json });
}

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/workflows"));
	await watched.page.route("**/ui/v1/connections/*/options", answer);
	await server.call("POST", "/v1/connections", {
		name: "wiki",
		integration: "notion",
		auth: "bearer",
		fields: { token: "ntn_a_token" },
	});
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

/** Opens a workflow whose only step adds a page to a database. */
async function open(name: string, step: object): Promise<string> {
	const steps = [{ id: "note", uses: "notion.create_database_page", ...step }];
	const { id } = await server.call("POST", "/v1/workflows", { name });
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	await watched.page.goto(`/workflows/${id}?step=note`);
	return id;
}

/** Saves the workflow, and waits until the server has the input of its step. */
async function save(workflow: string, input: object): Promise<void> {
	await watched.page.keyboard.press("ControlOrMeta+S");
	await expect.poll(async () => (await server.call("GET", `/v1/workflows/${workflow}`)).steps[0].with).toEqual(input);
}

test("a step is filled in from the account of its connection", async () => {
	const { page } = watched;
	const workflow = await open("Notes", {
		connection: "wiki",
		with: { database: "db-tasks", properties: { Extra: "as before" } },
	});
	const database = page.getByRole("combobox", { name: "Database" });
	await page.getByRole("button", { name: "Remove Extra" }).waitFor();
	await page.getByRole("combobox", { name: "Connection" }).selectOption("");
	await database.click();
	await page.getByText("Choose a connection first. You can also enter a value.").waitFor();
	await page.getByText("Choose a connection first. Then its fields are shown here.").waitFor();
	await shoot(page, "listed-no-connection");

	await page.getByRole("combobox", { name: "Connection" }).selectOption("wiki");
	await expect.poll(() => database.inputValue()).toBe("Tasks");
	await database.click();
	await page.getByRole("option", { name: /Projects/ }).waitFor();
	await shoot(page, "listed-options");
	const selected = () =>
		database.evaluate((field: HTMLInputElement) => field.selectionStart === 0 && field.selectionEnd === 5);
	await expect.poll(selected).toBe(true);
	await page.keyboard.type("proj");
	await expect.poll(() => page.getByRole("option", { name: /db-/ }).count()).toBe(1);
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	await expect.poll(() => database.inputValue()).toBe("Projects");

	const form = page.getByRole("group", { name: "Properties" });
	await form.getByRole("textbox", { name: "Name", exact: true }).fill("Write it down");
	await page.getByRole("combobox", { name: "Status" }).click();
	await page.getByRole("option", { name: "In progress" }).waitFor();
	await shoot(page, "listed-fields");
	await page.getByRole("option", { name: "In progress" }).click();
	await page.getByRole("button", { name: "Add another field" }).click();
	await page.keyboard.type("By name");
	await page.keyboard.press("Enter");
	await page.getByRole("textbox", { name: "By name" }).fill("added");
	const properties = { Extra: "as before", Name: "Write it down", Status: "In progress", "By name": "added" };
	await save(workflow, { database: "db-projects", properties });
	// Nothing was asked for what was typed on the way.
	expect(asked.map((one) => [one.input, one.with.database])).toEqual([
		["database", undefined],
		["properties", "db-tasks"],
		["properties", "db-projects"],
	]);

	await page.reload();
	await expect.poll(() => database.inputValue()).toBe("Projects");
	await expect.poll(() => page.getByRole("combobox", { name: "Status" }).inputValue()).toBe("In progress");
	await page.getByRole("button", { name: "Remove Extra" }).waitFor();
	await page.getByRole("button", { name: "Add another field" }).scrollIntoViewIfNeeded();
	await shoot(page, "listed-reloaded");
	watched.check();
});

test("a trigger of a service is added and filled in from the account", async () => {
	const { page } = watched;
	asked.length = 0;
	const { id } = await server.call("POST", "/v1/workflows", { name: "New pages" });
	await server.call("PATCH", `/v1/workflows/${id}`, {
		steps: [{ id: "note", uses: "log.write", with: { message: "Hi" } }],
	});
	await page.goto(`/workflows/${id}`);
	await page.getByRole("button", { name: "What starts this workflow?" }).click();
	await page.keyboard.type("notion page");
	await page.getByRole("option", { name: /New page/ }).waitFor();
	await shoot(page, "trigger-picker");
	await page.getByRole("option", { name: /New page/ }).click();
	await page.getByRole("combobox", { name: "Connection" }).selectOption("wiki");
	await page.getByRole("combobox", { name: "Database" }).click();
	await page.getByRole("option", { name: /Projects/ }).click();
	await page.getByRole("textbox", { name: "Every" }).fill("5m");
	await shoot(page, "trigger-service");
	await page.keyboard.press("ControlOrMeta+S");
	await expect
		.poll(async () => (await server.call("GET", `/v1/workflows/${id}`)).triggers)
		.toEqual([
			{ id: "new_page", type: "notion.new_page", connection: "wiki", every: "5m", with: { database: "db-projects" } },
		]);
	expect(asked).toEqual([{ trigger: "notion.new_page", input: "database", with: {} }]);
	watched.check();
});

// No service can be reached from here, so this one cannot be told; test/services tests the rest.
longTest("a trigger says why its service does not call", async () => {
	const { page } = watched;
	await server.call("POST", "/v1/connections", {
		name: "my-bot",
		integration: "telegram",
		auth: "api_key",
		fields: { token: "123456:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw" },
	});
	const { id } = await server.call("POST", "/v1/workflows", { name: "Bot" });
	await server.call("PATCH", `/v1/workflows/${id}`, {
		triggers: [{ id: "bot", type: "telegram.new_message", connection: "my-bot" }],
		steps: [{ id: "note", uses: "log.write", with: { message: "Hi" } }],
		state: "active",
	});
	await page.goto(`/workflows/${id}?step=@bot`);
	await page.getByText("The service calls when there is something new.").waitFor();
	await page.getByText("It could not be told where to call. This is tried again.").waitFor();
	await page.getByText(/set --public-url to an https URL/).waitFor();
	await shoot(page, "trigger-called");
	watched.check();
});

test("a list that cannot be read takes nothing away", async () => {
	const { page } = watched;
	watched.expect("422");
	broken = true;
	const input = { database: "db-tasks", properties: { Name: "As before" } };
	const workflow = await open("Broken", { connection: "wiki", with: input });
	await page.getByRole("textbox", { name: "Value of Name" }).waitFor();
	const database = page.getByRole("combobox", { name: "Database" });
	await database.click();
	await page.getByRole("alert").getByText("Notion: The service is out of order.").nth(1).waitFor();
	await shoot(page, "listed-error");
	await database.fill("my-own-id");
	await page.keyboard.press("Escape");
	await page.getByRole("listbox").waitFor({ state: "detached" });
	await save(workflow, { ...input, database: "my-own-id" });

	broken = false;
	await database.click();
	await page.getByRole("button", { name: "Try again" }).first().click();
	await page.getByText("No entry matches “my-own-id”. It is used as you entered it.").waitFor();
	expect(await database.inputValue()).toBe("my-own-id");
	watched.check();
});

longTest("the list fits on a phone", async () => {
	const { page } = watched;
	broken = false;
	await page.setViewportSize({ width: 375, height: 667 });
	await open("Phone", { connection: "wiki", with: { database: "db-tasks", properties: {} } });
	await page.getByRole("treeitem", { name: /note/ }).first().click();
	await page.getByRole("combobox", { name: "Database" }).click();
	await page.getByRole("option", { name: /Projects/ }).waitFor();
	await shoot(page, "listed-phone");
	// The sheet stays when the list closes.
	await page.keyboard.press("Escape");
	await page.getByRole("listbox").waitFor({ state: "detached" });
	await page.getByRole("combobox", { name: "Status" }).click();
	await page.getByRole("option", { name: "Done", exact: true }).click();
	await expect.poll(() => page.getByRole("combobox", { name: "Status" }).inputValue()).toBe("Done");
	await shoot(page, "listed-phone-fields");
	await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBe(375);
	watched.check();
});
