import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copied, openSignedIn, shoot, type Watched } from "./browser";
import { longTest } from "./lane";
import { type Provider, startProvider } from "./provider";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;
let shop: HttpServer;
let address: string;
let provider: Provider;

beforeAll(async () => {
	shop = createServer((request, response) => {
		response.statusCode = request.headers["x-key"] === "let-me-in" ? 200 : 401;
		response.end("{}");
	});
	await new Promise<void>((done) => shop.listen(0, "127.0.0.1", done));
	address = `http://127.0.0.1:${(shop.address() as AddressInfo).port}`;
	provider = await startProvider();
	({ server, browser, watched } = await openSignedIn("/connections"));
	// A consent leaves the dashboard.
	watched.expect(`request: ${provider.url}`);
	watched.expect("request: https://accounts.google.com");
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
	shop?.close();
	provider?.close();
});

/** Opens a new workflow with one request, and selects the step. */
async function openRequest(name: string, url: string): Promise<string> {
	const steps = [{ id: "orders", uses: "http.request", with: { url } }];
	const { id } = await server.call("POST", "/v1/workflows", { name });
	await server.call("PATCH", `/v1/workflows/${id}`, { steps });
	await watched.page.goto(`/workflows/${id}?step=orders`);
	await watched.page.getByRole("combobox", { name: "Connection" }).waitFor();
	return id;
}

/** Saves the workflow, and waits until the server has the connection. */
async function save(workflow: string, connection: string): Promise<void> {
	await watched.page.keyboard.press("ControlOrMeta+S");
	await expect
		.poll(async () => (await server.call("GET", `/v1/workflows/${workflow}`)).steps[0].connection)
		.toBe(connection);
}

const named = (name: string) => (one: { name: string }) => one.name === name;

/** Follows a link that opens a window, and returns it. */
async function popup(open: () => Promise<void>): Promise<Page> {
	const [window] = await Promise.all([watched.context.waitForEvent("page"), open()]);
	return window;
}

longTest("a custom connection with an API key is made and tested", async () => {
	const { page } = watched;
	await page.getByText("No connections yet").waitFor();
	await page.getByRole("button", { name: "New connection" }).first().click();
	await page.getByRole("button", { name: "Google", exact: true }).waitFor();
	await shoot(page, "connections-services");
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Name (required)").fill("shop");
	await page.getByLabel("Hosts").fill(address);
	await page.getByLabel("Name of place 1").fill("X-Key");
	await page.getByLabel("Value of place 1").fill("${{ secret.key }}");
	await page.getByLabel("Test URL").fill(`${address}/me`);
	await page.getByLabel("API key (required)").fill("let-me-in");
	await shoot(page, "connections-custom");
	await page.getByRole("button", { name: "Connect", exact: true }).click();
	await page.getByRole("heading", { name: "shop" }).waitFor();
	await page.getByRole("button", { name: "Test", exact: true }).click();
	await page.getByText("The connection “shop” works").waitFor();
	await page.getByText("Connected", { exact: true }).waitFor();
	await shoot(page, "connections-one");
	expect(await page.content()).not.toContain("let-me-in");
	watched.check();
});

longTest("a connection is renamed, and the builder writes the new name with the next save", async () => {
	const { page } = watched;
	const definition = { hosts: [address] };
	const { id: connection } = await server.call("POST", "/v1/connections", {
		name: "old-name",
		auth: "bearer",
		definition,
		fields: { token: "a token" },
	});
	const workflow = await openRequest("Renamed", `${address}/orders`);
	await page.getByRole("combobox", { name: "Connection" }).selectOption("old-name");
	await save(workflow, "old-name");

	await page.goto(`/connections/${connection}`);
	await page.getByText("step orders").waitFor();
	await page.getByRole("button", { name: "Name and access" }).click();
	await page.getByLabel("Name (required)").fill("new-name");
	await page.getByLabel("May be used by").selectOption("members");
	await page.getByRole("checkbox").first().check();
	await shoot(page, "connections-settings");
	await page.getByRole("button", { name: "Save" }).click();
	await page.getByRole("heading", { name: "new-name" }).waitFor();
	await page.getByText("1 chosen member").waitFor();
	await page.getByText("Earlier names").waitFor();
	await shoot(page, "connections-renamed");

	await page.goto(`/workflows/${workflow}?step=orders`);
	const select = page.getByRole("combobox", { name: "Connection" });
	await expect.poll(() => select.inputValue()).toBe("new-name");
	expect((await server.call("GET", `/v1/workflows/${workflow}`)).steps[0].connection).toBe("old-name");
	await page.getByLabel("Name", { exact: true }).first().fill("Ask again");
	await save(workflow, "new-name");
	watched.check();
});

longTest("the dialog asks for certificates, and says what is wrong with them", async () => {
	const { page } = watched;
	await page.goto("/connections");
	await page.getByRole("button", { name: "New connection" }).first().click();
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Authenticate with").selectOption("digest");
	await page.getByText("Client certificate and certificate authorities").click();
	await page.getByLabel("Choose a file for Certificate authorities").scrollIntoViewIfNeeded();
	await shoot(page, "connections-tls");
	await page.getByLabel("Authenticate with").selectOption("client_certificate");
	await page.getByLabel("Name (required)").fill("bank");
	await page.getByLabel("Hosts").fill("https://api.bank.example");
	await page.getByLabel("Client certificate (required)").fill("-----BEGIN CERTIFICATE-----");
	await page.getByLabel("Private key of the certificate (required)").fill("-----BEGIN PRIVATE KEY-----");
	watched.expect("400");
	await page.getByRole("button", { name: "Connect", exact: true }).click();
	await page.getByText(/Must be certificates in PEM format/).waitFor();
	await page.getByText(/Must be certificates in PEM format/).scrollIntoViewIfNeeded();
	await shoot(page, "connections-certificate");
	await page.getByRole("button", { name: "Back" }).click();
	await page.keyboard.press("Escape");
	watched.check();
});

test("a connection is made in the builder, keeps the edit, and the step works with it", async () => {
	const { page } = watched;
	const id = await openRequest("Count orders", `${address}/orders`);
	await page.getByLabel("Name", { exact: true }).first().fill("Ask the shop");
	await page.getByRole("button", { name: "New connection…" }).click();
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Name (required)").fill("warehouse");
	await page.getByLabel("Hosts").fill(address);
	await page.getByLabel("Name of place 1").fill("X-Key");
	await page.getByLabel("Value of place 1").fill("${{ secret.key }}");
	await page.getByLabel("API key (required)").fill("let-me-in");
	await page.getByRole("button", { name: "Connect", exact: true }).click();
	await page.getByRole("dialog").waitFor({ state: "detached" });
	await expect.poll(() => page.getByRole("combobox", { name: "Connection" }).inputValue()).toBe("warehouse");
	expect(await page.getByLabel("Name", { exact: true }).first().inputValue()).toBe("Ask the shop");
	await shoot(page, "builder-connection");
	await save(id, "warehouse");
	const [step] = (await server.call("GET", `/v1/workflows/${id}`)).steps;
	expect(step.name).toBe("Ask the shop");

	await page.getByRole("button", { name: "Zoom to fit" }).click();
	await page.locator('[data-node="orders"]').click();
	await page.keyboard.press("t");
	await page.getByRole("dialog").getByRole("button", { name: "Test step" }).click();
	await page.getByRole("button", { name: "Pin this output" }).waitFor();
	await expect
		.poll(async () => (await server.call("GET", "/v1/connections")).data.find(named("warehouse")).status)
		.toBe("connected");
	watched.check();
});

longTest("OAuth 2: connect in the builder, revoke, and reconnect from the run that waits", async () => {
	const { page } = watched;
	const id = await openRequest("Fetch orders", `${provider.url}/orders`);
	await page.getByRole("button", { name: "New connection…" }).click();
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Authenticate with").selectOption("oauth2");
	await page.getByLabel("Name (required)").fill("consented");
	await page.getByLabel("Hosts").fill(provider.url);
	await page.getByLabel("Authorize URL").fill(`${provider.url}/authorize`);
	await page.getByLabel("Token URL").fill(`${provider.url}/token`);
	await page.getByLabel("Client ID").fill("stepmill");
	await page.getByLabel("Client secret").fill("a client secret");
	await page.getByRole("button", { name: "Copy the redirect URL" }).click();
	expect(await copied(page)).toBe(`${server.url}/ui/v1/oauth/callback`);
	await shoot(page, "connections-oauth");

	const denied = await popup(() => page.getByRole("button", { name: "Continue to the service" }).click());
	await page.getByText("Did you close the window?").waitFor();
	await shoot(page, "connections-consent");
	await denied.getByRole("link", { name: "Deny" }).click();
	await page.getByRole("alert").getByText("access_denied").waitFor();
	await shoot(page, "connections-refused");
	await page.getByRole("button", { name: "Try again" }).click();
	expect(await page.getByLabel("Authorize URL").inputValue()).toBe(`${provider.url}/authorize`);

	const closed = await popup(() => page.getByRole("button", { name: "Continue to the service" }).click());
	await closed.close();
	const again = await popup(() => page.getByRole("link", { name: "Open it again" }).click());
	await again.getByRole("link", { name: "Allow" }).click();
	await page.getByRole("dialog").waitFor({ state: "detached" });
	await expect.poll(() => page.getByRole("combobox", { name: "Connection" }).inputValue()).toBe("consented");
	expect(provider.redirects.at(-1)).toBe(`${server.url}/ui/v1/oauth/callback`);
	await save(id, "consented");

	provider.revoke();
	const { id: run } = await server.call("POST", `/v1/workflows/${id}/runs`, {});
	await page.goto(`/runs/${run}`);
	const banner = page.getByRole("region", { name: "What the run is waiting for" });
	await banner.getByRole("button", { name: "Reconnect" }).waitFor();
	await shoot(page, "run-connection");

	await page.goto(`/workflows/${id}?step=orders`);
	await page
		.getByRole("status")
		.getByText(/“consented” must be reconnected/)
		.waitFor();
	await shoot(page, "builder-broken");
	await page.goto("/connections");
	await page.getByRole("row", { name: /consented.*Needs reconnecting.*1 workflow.*1/ }).waitFor();
	await shoot(page, "connections-list");
	await page.setViewportSize({ width: 390, height: 844 });
	await shoot(page, "connections-list-narrow");
	await page.setViewportSize({ width: 1280, height: 800 });

	await page.goto(`/runs/${run}`);
	const consent = await popup(() => banner.getByRole("button", { name: "Reconnect" }).click());
	await consent.getByRole("link", { name: "Allow" }).click();
	await page.getByText(/“consented” was reconnected/).waitFor();
	await expect.poll(async () => (await server.call("GET", `/v1/runs/${run}`)).status).toBe("succeeded");
	await banner.waitFor({ state: "detached" });
	watched.check();
});

longTest("a person connects and reconnects by entering a code", async () => {
	const { page } = watched;
	await page.goto("/connections?new=1");
	await page.getByRole("button", { name: "Custom connection" }).click();
	await page.getByLabel("Authenticate with").selectOption("oauth2");
	await page.getByLabel("Grant").selectOption("device_code");
	await page.getByLabel("Name (required)").fill("coded");
	await page.getByLabel("Hosts").fill(provider.url);
	await page.getByLabel("Device URL").fill(`${provider.url}/device`);
	await page.getByLabel("Token URL").fill(`${provider.url}/token`);
	await page.getByLabel("Client ID").fill("stepmill");
	await page.getByText("Further settings").click();
	await page.getByRole("button", { name: "Add a parameter" }).click();
	await page.getByLabel("Name of parameter 1").fill("state");
	await page.getByLabel("Value of parameter 1").fill("mine");
	watched.expect("400");
	await page.getByRole("button", { name: "Get a code" }).click();
	await page.getByText("“state” is set by Stepmill: remove it.").waitFor();
	await shoot(page, "connections-device-form");
	await page.getByLabel("Name of parameter 1").fill("audience");
	await page.getByRole("button", { name: "Get a code" }).click();
	await page.getByText("WDJB-MJHT").waitFor();
	await page.getByRole("button", { name: "Copy the code" }).click();
	expect(await copied(page)).toBe("WDJB-MJHT");
	await shoot(page, "connections-device");
	await page.setViewportSize({ width: 390, height: 844 });
	await shoot(page, "connections-device-narrow");
	await page.setViewportSize({ width: 1280, height: 800 });
	const entering = await popup(() => page.getByRole("link", { name: "Open the page with the code filled in" }).click());
	await entering.getByRole("link", { name: "Allow" }).click();
	await page.getByRole("dialog").waitFor({ state: "detached" });
	const made = async () => (await server.call("GET", "/v1/connections")).data.find(named("coded"));
	const { id, status } = await made();
	expect(status).toBe("connected");

	await page.goto(`/connections/${id}`);
	await page.getByRole("button", { name: "Reconnect" }).click();
	await page.getByText("WDJB-MJHT").waitFor();
	const again = await popup(() => page.getByRole("link", { name: `${provider.url}/enter`, exact: true }).click());
	await again.getByRole("link", { name: "Allow" }).click();
	await page.getByText(/“coded” was reconnected/).waitFor();

	await page.getByRole("button", { name: "Change" }).click();
	await page.getByLabel("Client authentication").selectOption("private_key_jwt");
	await page.getByLabel("Private key").first().fill("-----BEGIN PRIVATE KEY-----");
	await page.getByLabel("Private key").first().scrollIntoViewIfNeeded();
	await shoot(page, "connections-private-key");
	await page.getByRole("button", { name: "Save" }).click();
	await page.getByText("must be a private key in PEM format").waitFor();
	await page.getByText("must be a private key in PEM format").scrollIntoViewIfNeeded();
	await shoot(page, "connections-private-key-error");
	watched.check();
});

longTest("an owner adds an OAuth app in the dialog that connects the service", async () => {
	const { page, context } = watched;
	await context.route("https://accounts.google.com/**", async (route) => {
		const params = new URL(route.request().url()).searchParams;
		const back = new URL(params.get("redirect_uri") ?? "");
		back.search = new URLSearchParams({ state: params.get("state") ?? "", error: "access_denied" }).toString();
		const body = `<!doctype html><link rel="icon" href="data:,"><title>Google</title><a href="${back.href.replaceAll("&", "&amp;")}">Deny</a>`;
		await route.fulfill({ contentType: "text/html", body });
	});
	await page.goto("/connections?new=1");
	await page.getByRole("button", { name: "Google Sheets" }).click();
	expect(await page.getByRole("checkbox", { name: "Google Sheets" }).isChecked()).toBe(true);
	await page.getByText("How to register the OAuth app").click();
	await page.getByText(`${server.url}/ui/v1/oauth/callback`).waitFor();
	await shoot(page, "connections-google");
	watched.expect("409");
	await page.getByRole("button", { name: "Continue to Google Sheets" }).click();
	await page.getByRole("dialog", { name: "Set up Google Sheets" }).waitFor();
	await page.getByLabel("Client ID").fill("1234.apps.googleusercontent.com");
	await page.getByLabel("Client secret").fill("a client secret");
	await shoot(page, "connections-google-app");
	await page.setViewportSize({ width: 390, height: 844 });
	await shoot(page, "connections-google-app-narrow");
	await page.setViewportSize({ width: 1280, height: 800 });
	const consent = await popup(() => page.getByRole("button", { name: "Save and continue" }).click());
	await consent.getByRole("link", { name: "Deny" }).click();
	await page.getByRole("alert").getByText("access_denied").waitFor();
	await page.getByRole("button", { name: "Cancel" }).click();
	watched.check();
});

longTest("the page at the end of a consent says how it went", async () => {
	const { page } = watched;
	await page.goto("/connections/done?state=s&connection=conn_1");
	await page.getByRole("heading", { name: "Connected" }).waitFor();
	await shoot(page, "connections-done");
	await page.goto("/connections/done?state=s&error=consent_expired&message=this+consent+has+expired%3A+connect+again");
	await page.getByRole("heading", { name: "Not connected" }).waitFor();
	await shoot(page, "connections-done-error");

	const confirm = "/connections/done?state=s&confirm=mail&account=grace%40example.com&replaces=ada%40example.com";
	watched.expect("409");
	await page.goto(confirm);
	await page.getByRole("heading", { name: "Use another account?" }).waitFor();
	await shoot(page, "connections-done-confirm");
	await page.getByRole("button", { name: "Use grace@example.com" }).click();
	await page.getByText("can no longer be completed").waitFor(); // nobody was asked for it
	await page.getByRole("button", { name: "Keep ada@example.com" }).click();
	await page.getByRole("heading", { name: "Nothing has changed" }).waitFor();
	await shoot(page, "connections-done-kept");
	watched.check();
});

longTest("OAuth apps are managed in the settings", async () => {
	const { page } = watched;
	const asana = { integration: "asana", client_id: "1", client_secret: "a client secret" };
	await server.call("POST", "/v1/oauth-apps", asana);
	await page.goto("/settings/oauth-apps");
	await page.getByRole("row", { name: /Asana/ }).waitFor();
	await page.getByRole("button", { name: "Add OAuth app" }).click();
	await page.getByLabel("Service").selectOption({ label: "Slack" });
	await page.getByLabel("Client ID").fill("1234.5678");
	await page.getByLabel("Client secret").fill("abc");
	watched.expect("400");
	await page.getByRole("button", { name: "Add app" }).click();
	await page.getByText("Must have at least 4 characters").waitFor();
	await shoot(page, "settings-oauth-app");
	await page.getByLabel("Client secret").fill("a client secret");
	await page.getByLabel("Share with all workspaces").check();
	await page.getByRole("button", { name: "Add app" }).click();
	await page.getByRole("row", { name: /Slack.*Shared.*1234\.5678/ }).waitFor();
	await shoot(page, "settings-oauth-apps");
	await page.setViewportSize({ width: 390, height: 844 });
	await shoot(page, "settings-oauth-apps-narrow");
	await page.setViewportSize({ width: 1280, height: 800 });
	expect(await page.content()).not.toContain("a client secret");

	await page.getByRole("button", { name: "Replace the app for Slack" }).click();
	await page.getByLabel("Client ID").fill("8765.4321");
	await page.getByLabel("Client secret").fill("another secret");
	await page.getByRole("button", { name: "Replace app" }).click();
	await page.getByRole("row", { name: /Slack.*8765\.4321/ }).waitFor();
	await page.getByRole("button", { name: "Delete the app for Slack" }).click();
	await page.getByRole("button", { name: "Delete app" }).click();
	await page.getByRole("row", { name: /Slack/ }).waitFor({ state: "detached" });
	await page.getByRole("row", { name: /Asana/ }).waitFor();
	watched.check();
});
