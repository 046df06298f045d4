import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSignedIn, shoot, type Watched, write } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

let server: Server;
let browser: Browser;
let watched: Watched;

beforeAll(async () => {
	({ server, browser, watched } = await openSignedIn("/settings/integrations"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
});

const manifest = `# the parcels of our warehouse
id: x_parcels
name: Parcels
category: commerce
docs: https://docs.parcels.example
base_url: https://api.parcels.example/v1
connection:
  hosts: [api.parcels.example]
  auth:
    - kind: bearer
      label: Access token
  test: {path: /me}
  learn: {label: "\${{ test.name }}"}
operations:
  send_parcel:
    title: Send a parcel
    summary: Asks the warehouse to send something.
    input:
      address: {type: string, title: Address, required: true}
      fragile: {type: boolean, title: Fragile}
    request: {method: POST, path: /parcels, json: {to: "\${{ input.address }}", fragile: "\${{ input.fragile }}"}}
  parcels_since:
    title: Parcels since
    hidden: true
    request:
      path: /parcels
      query: {since: "\${{ cursor.since }}"}
      idempotency: safe
      items: body.parcels
triggers:
  delivered:
    title: Parcel delivered
    poll:
      operation: parcels_since
      every: 5m
      cursor: "{since: last(body.parcels).id ?? cursor.since}"
    key: item.id
`;

/** Replaces the manifest by a call with the key. */
async function replace(text: string): Promise<void> {
	const response = await fetch(`${server.url}/v1/integrations/x_parcels`, {
		method: "PUT",
		headers: { Authorization: `Bearer ${server.key}`, "Content-Type": "application/yaml" },
		body: text,
	});
	expect(response.status).toBe(200);
}

const phone = { width: 390, height: 844 };
const desktop = { width: 1280, height: 800 };

/** Takes screenshots of the page, also as wide as a phone. */
async function shootBoth(name: string): Promise<void> {
	const { page } = watched;
	await shoot(page, name);
	await page.setViewportSize(phone);
	await shoot(page, `${name}-narrow`);
	await page.setViewportSize(desktop);
}

test("a workspace describes an integration, connects to it and uses it in the builder", async () => {
	const { page } = watched;
	await page.getByText("No integrations of your own yet").waitFor();
	await shootBoth("integrations-empty");
	await page.getByRole("link", { name: "Add integration" }).first().click();
	const editor = page.getByRole("textbox", { name: "Manifest" });
	await editor.waitFor();
	await shootBoth("integrations-new");

	watched.expect("422");
	await write(editor, manifest.replace("method: POST", "method: SEND"));
	await page.getByRole("button", { name: "Add integration" }).click();
	await page.getByRole("alert").getByText("The manifest has 1 problem.").waitFor();
	await page.getByRole("button", { name: "Line 21, column 23" }).click();
	await page.locator(".cm-lintRange-error").waitFor();
	await shootBoth("integrations-problem");
	await write(editor, manifest);
	await page.getByRole("button", { name: "Add integration" }).click();
	await page.getByRole("heading", { name: "Parcels" }).waitFor();
	expect((await server.call("GET", "/v1/integrations/x_parcels/manifest")).manifest).toBe(manifest);

	// The credential is only sent to hosts that whoever enters it has confirmed.
	await page.goto("/connections?new=1");
	await page.getByRole("heading", { name: "Described by this workspace" }).waitFor();
	await shoot(page, "integrations-services");
	await page.getByRole("button", { name: "Parcels" }).click();
	await page.getByLabel("Token (required)").fill("let-me-in");
	const connect = page.getByRole("button", { name: "Connect", exact: true });
	expect(await connect.isDisabled()).toBe(true);
	await page.getByRole("checkbox", { name: "The credential may be sent to this host" }).check();
	await shootBoth("integrations-connect");
	await connect.click();
	await page.getByRole("heading", { name: "parcels", exact: true }).waitFor();
	expect((await server.call("GET", "/v1/connections")).data[0]).toMatchObject({
		integration: "x_parcels",
		hosts: ["api.parcels.example"],
	});

	const { id: workflow } = await server.call("POST", "/v1/workflows", { name: "Send it" });
	await page.goto(`/workflows/${workflow}`);
	await page.getByRole("button", { name: "What happens first?" }).click();
	await page.getByRole("combobox", { name: "Search actions" }).fill("send parcel");
	await page.getByRole("option", { name: /Send a parcel/ }).waitFor();
	await shoot(page, "integrations-picker");
	await page.keyboard.press("Enter");
	await page.getByRole("combobox", { name: "Connection" }).selectOption("parcels");
	await write(page.getByRole("textbox", { name: "Address" }), "1 Main Street");
	await shoot(page, "integrations-step");
	await page.getByRole("button", { name: "What starts this workflow?" }).click();
	await page.getByRole("combobox", { name: "Search triggers" }).fill("parcel");
	await page.getByRole("option", { name: /Parcel delivered/ }).click();
	await page.getByRole("combobox", { name: "Connection" }).selectOption("parcels");
	await shoot(page, "integrations-trigger");
	await page.keyboard.press("ControlOrMeta+S");
	await expect
		.poll(() => server.call("GET", `/v1/workflows/${workflow}`))
		.toMatchObject({
			steps: [{ uses: "x_parcels.send_parcel", connection: "parcels", with: { address: "1 Main Street" } }],
			triggers: [{ type: "x_parcels.delivered", connection: "parcels" }],
		});
	watched.check(); // own integrations have no icon, and nothing asks for one
});

longTest("a changed integration asks for the credential again, and is deleted after its connections", async () => {
	const { page } = watched;
	await page.goto("/settings/integrations");
	await page.getByRole("row", { name: /Parcels/ }).waitFor();
	await shootBoth("integrations-list");
	await page.getByRole("link", { name: "Parcels" }).click();
	const editor = page.getByRole("textbox", { name: "Manifest" });
	await write(editor, manifest.replace("hosts: [", "hosts: [labels.parcels.example, "));
	await page.getByRole("button", { name: "Save" }).click();
	await page.getByText("“Parcels” was saved").waitFor();
	await page.getByText("Needs reconnecting").waitFor();
	await shootBoth("integrations-one");

	await page.getByRole("link", { name: "parcels", exact: true }).click();
	await page.getByText(/Its integration was changed/).waitFor();
	await shootBoth("integrations-changed");
	await page.getByRole("button", { name: "Change" }).click();
	await page.getByLabel("Token (required)").fill("let-me-in");
	await page.getByText("labels.parcels.example").waitFor();
	await page.getByRole("checkbox", { name: "The credential may be sent to these hosts" }).check();
	await shootBoth("integrations-confirm");
	await page.getByRole("button", { name: "Save" }).click();
	await page.getByText("Not tested").first().waitFor();
	const [{ id: connection }] = (await server.call("GET", "/v1/connections")).data;

	// Somebody else changes it meanwhile.
	await page.goto("/settings/integrations/x_parcels");
	await write(editor, manifest.replace("name: Parcels", "name: Our parcels"));
	await replace(manifest.replace("name: Parcels", "name: Their parcels"));
	watched.expect("412");
	await page.getByRole("button", { name: "Save" }).click();
	await page.getByRole("dialog", { name: /was changed by somebody else/ }).waitFor();
	await page.getByRole("textbox", { name: "The manifest now" }).waitFor();
	await shootBoth("integrations-conflict");
	await page.getByRole("button", { name: "Discard mine" }).click();
	await page.getByText("name: Their parcels").waitFor();
	await page.getByRole("heading", { name: "Their parcels" }).waitFor();

	watched.expect("409");
	await page.getByRole("button", { name: "Delete", exact: true }).click();
	await page.getByRole("button", { name: "Delete integration" }).click();
	await page
		.getByRole("alert")
		.getByText(/delete it first/)
		.waitFor();
	await shootBoth("integrations-in-use");
	await server.call("DELETE", `/v1/connections/${connection}`);
	await page.getByRole("button", { name: "Delete integration" }).click();
	await page.getByText("No integrations of your own yet").waitFor();
	watched.check();
});
