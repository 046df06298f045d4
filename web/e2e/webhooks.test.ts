import { createServer, type Server as HttpServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { examples } from "../src/pages/webhooks/verify";
import { openSignedIn, shoot, type Watched } from "./browser";
import { longTest } from "./lane";
import type { Server } from "./server";

type Verify = (secret: string, headers: IncomingHttpHeaders, body: Buffer) => boolean;

let server: Server;
let browser: Browser;
let watched: Watched;
let receiver: HttpServer;
let address: string;
let status = 200;
const received: { headers: IncomingHttpHeaders; body: Buffer }[] = [];

beforeAll(async () => {
	receiver = createServer((request, response) => {
		const pieces: Buffer[] = [];
		request.on("data", (piece) => pieces.push(piece));
		request.on("end", () => {
			received.push({ headers: request.headers, body: Buffer.concat(pieces) });
			response.statusCode = status;
			response.end("thank you");
		});
	});
	await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
	address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`;
	({ server, browser, watched } = await openSignedIn("/webhooks"));
});

afterAll(async () => {
	await browser?.close();
	await server?.stop();
	receiver?.close();
});

const arrived = (event: string) => received.filter(({ headers }) => headers["x-service-event"] === event);

test("a webhook receives verifiable events, and its log shows them", async () => {
	const { page } = watched;
	const { code } = examples.find(({ language }) => language === "Node") ?? { code: "" };
	const { verify } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { verify: Verify };

	await page.getByText("No webhooks yet").waitFor();
	await page.getByRole("button", { name: "New webhook" }).first().click();
	await page.getByLabel("URL").fill(address);
	await shoot(page, "webhooks-new");
	await page.getByRole("button", { name: "Create webhook" }).click();
	const secret = (await page.getByRole("group", { name: "Signing secret" }).textContent()) ?? "";
	await shoot(page, "webhooks-secret");
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "I have stored it" }).click();
	await page.getByRole("heading", { name: address }).waitFor();

	await page.getByRole("button", { name: "Send test" }).click();
	await page.getByRole("menuitem", { name: "run.failed" }).click();
	await page.getByRole("row", { name: /run\.failed.*Sample.*Delivered/ }).waitFor();
	await expect.poll(() => arrived("run.failed").length).toBe(1);

	const { id } = await server.call("POST", "/v1/workflows", { name: "Greet a customer" });
	await server.call("POST", `/v1/workflows/${id}/runs`, {});
	// The list updates without a click.
	await page.getByRole("row", { name: /run\.succeeded.*Delivered/ }).waitFor();
	const [real] = arrived("run.succeeded");
	if (!real) throw new Error("nothing arrived");
	expect(verify(secret, real.headers, real.body)).toBe(true);
	expect(verify(secret, real.headers, Buffer.from(`${real.body} `))).toBe(false);
	expect(JSON.parse(real.body.toString())).toMatchObject({ data: { workflow_name: "Greet a customer" } });
	await shoot(page, "webhooks-one");

	await page.getByRole("link", { name: "run.succeeded" }).click();
	await page.getByText("thank you").waitFor();
	await page.getByText("Greet a customer").waitFor();
	await shoot(page, "webhooks-delivery");
	await page.getByRole("button", { name: "Redeliver" }).click();
	await expect.poll(() => arrived("run.succeeded").length).toBe(2);
	expect(arrived("run.succeeded")[1]?.headers["webhook-id"]).toBe(real.headers["webhook-id"]);
	watched.check();
});

longTest("both secrets verify after a rotation", async () => {
	const { page } = watched;
	const { code } = examples.find(({ language }) => language === "Node") ?? { code: "" };
	const { verify } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { verify: Verify };
	const [webhook] = (await server.call("GET", "/v1/webhooks")).data;
	await page.goto(`/webhooks/${webhook.id}`);
	await page.getByRole("button", { name: "More" }).click();
	await page.getByRole("menuitem", { name: /Rotate/ }).click();
	await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
	const secret = (await page.getByRole("group", { name: "Signing secret" }).textContent()) ?? "";
	await page.keyboard.press("Escape");
	await page.getByRole("button", { name: "I have stored it" }).click();
	const before = received.length;
	await server.call("POST", `/v1/webhooks/${webhook.id}/test`, { events: ["run.failed"] });
	await expect.poll(() => received.length).toBeGreaterThan(before);
	const last = received.at(-1) as (typeof received)[number];
	expect(verify(secret, last.headers, last.body)).toBe(true);
	expect(String(last.headers["webhook-signature"]).split(" ")).toHaveLength(2);
	await page.getByText(/The previous secret expires/).waitFor();
	watched.check();
});

longTest("a 410 response disables the webhook, which shows why and can be enabled again", async () => {
	const { page } = watched;
	status = 410;
	const [webhook] = (await server.call("GET", "/v1/webhooks")).data;
	await server.call("POST", `/v1/webhooks/${webhook.id}/test`, { events: ["run.failed"] });
	await expect.poll(async () => (await server.call("GET", `/v1/webhooks/${webhook.id}`)).enabled).toBe(false);
	await page.goto(`/webhooks/${webhook.id}`);
	await page.getByText("Disabled automatically").waitFor();
	await page
		.getByText(/returned 410 Gone/)
		.first()
		.waitFor();
	await shoot(page, "webhooks-disabled");
	status = 200;
	await page.getByRole("button", { name: "Enable webhook" }).click();
	await page.getByText("Disabled automatically").waitFor({ state: "detached" });
	await page.getByRole("tab", { name: "Verify signatures" }).click();
	await page.getByRole("group", { name: "Node example" }).waitFor();
	await shoot(page, "webhooks-verify");
	watched.check();
});

longTest("a rejected URL is shown at its field", async () => {
	const { page } = watched;
	await page.goto("/webhooks?new=1");
	await page.getByLabel("URL").fill("http://10.0.0.1/");
	watched.expect("422");
	await page.getByRole("button", { name: "Create webhook" }).click();
	await page
		.getByRole("dialog")
		.getByText(/private|not allowed|not public/i)
		.first()
		.waitFor();
	await expect.poll(() => page.getByLabel("URL").getAttribute("aria-invalid")).toBe("true");
	watched.check();
});
