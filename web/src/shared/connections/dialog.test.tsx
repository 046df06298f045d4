import { act } from "@testing-library/react";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Call, errorResponse, redirectUrl, renderPage } from "@/test/render";
import { reportConsent } from "./consent";
import { ConsentWait } from "./consent-wait";
import { ConnectDialog } from "./dialog";

const empty = { data: [], next_cursor: null };
const field = { help: null, required: true, default: null, enum: [], pattern: null, format: null, example: null };
const integrations = {
	data: [
		{
			id: "shop",
			name: "Shop",
			category: "commerce",
			docs: "https://shop.example/docs",
			keywords: [],
			connection: "shop",
			operations: [],
			hosts: [],
			auth: [
				{
					id: "api_key",
					kind: "api_key",
					label: "Key",
					help: "From the settings.",
					consent: false,
					fields: [{ ...field, name: "token", title: "Token", secret: true }],
					app_fields: [],
					scopes: [],
				},
				{
					id: "oauth2",
					kind: "oauth2",
					label: "Sign in",
					help: "Register at https://shop.example/apps.",
					consent: true,
					fields: [],
					app_fields: [
						{ ...field, name: "tenant", title: "Tenant", secret: false },
						{ ...field, name: "signing", title: "Signing secret", secret: true, required: false },
					],
					scopes: [],
				},
			],
		},
	],
	next_cursor: null,
};
const authorizeUrl = "https://shop.example/authorize?state=s1";
const connection = { id: "conn_1", name: "shop", aliases: [], integration: "shop" };
const answers = {
	"GET /v1/connections": { data: [connection], next_cursor: null },
	"GET /v1/integrations": integrations,
};

async function open(more: object, scopes?: ("admin" | "write")[]) {
	const onConnected = vi.fn();
	const drawn = await renderPage(<ConnectDialog onClose={() => {}} onConnected={onConnected} />, {
		answers: { ...answers, ...more },
		...(scopes && { scopes }),
	});
	return { ...drawn, onConnected };
}

describe("connecting a service", () => {
	it("with a key proposes a free name and shows errors at their fields", async () => {
		let failed = false;
		const { screen, user, calls, onConnected } = await open({
			"POST /v1/connections": () => {
				if (failed) return { ...connection, id: "conn_2" };
				failed = true;
				return errorResponse(400, "invalid_request", "some fields are not valid", [
					{ pointer: "/fields/token", message: "must have the form tok_…" },
				]);
			},
		});
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		expect((await screen.findByRole<HTMLInputElement>("textbox", { name: /^Name/ })).value).toBe("shop-2");
		const token = screen.getByLabelText<HTMLInputElement>(/^Token/);
		expect(token.type).toBe("password");
		await user.type(token, "abc{Enter}");
		await screen.findByText("Must have the form tok_…");
		expect(screen.queryByRole("alert")).toBeNull();
		await user.click(screen.getByRole("button", { name: "Connect" }));
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalledWith(expect.objectContaining({ id: "conn_2" })));
		const sent = calls.filter(({ method }) => method === "POST").at(-1);
		expect(sent?.body).toEqual({ name: "shop-2", auth: "api_key", fields: { token: "abc" }, integration: "shop" });
	});

	it("asks which services use it, and proposes the one that was chosen", async () => {
		const services = { ...field, name: "services", title: "Services", secret: false, format: "services" };
		const choices = ["Calendar", "Mail", "Tables"].map((label) => ({ value: label.toLowerCase(), label }));
		const [shop] = integrations.data;
		const way = { ...shop?.auth[0], fields: [{ ...services, default: "mail", enum: choices }] };
		const { screen, user, calls } = await open({
			"GET /v1/integrations": { data: [{ ...shop, id: "mail", name: "Mail", auth: [way] }], next_cursor: null },
			"POST /v1/connections": connection,
		});
		await user.click(await screen.findByRole("button", { name: "Mail" }));
		const box = (name: string) => screen.getByRole<HTMLInputElement>("checkbox", { name });
		expect(["Calendar", "Mail", "Tables"].map((name) => box(name).checked)).toEqual([false, true, false]);
		const connect = screen.getByRole<HTMLButtonElement>("button", { name: "Connect" });
		await user.click(box("Mail"));
		expect(connect.disabled).toBe(true);
		for (const name of ["Tables", "Calendar"]) await user.click(box(name));
		await user.click(connect);
		const sent = () => calls.find(({ method }) => method === "POST")?.body;
		await vi.waitFor(() => expect(sent()).toMatchObject({ fields: { services: "calendar tables" } }));
	});

	it("by consent asks an owner for the OAuth app, then waits for the other window", async () => {
		const opened = vi.spyOn(window, "open").mockReturnValue(null);
		let hasApp = false;
		const { screen, user, calls, onConnected } = await open({
			"POST /v1/connections/connect": () =>
				hasApp
					? { authorize_url: authorizeUrl, redirect_url: redirectUrl }
					: errorResponse(409, "oauth_app_missing", "there is no OAuth app for Shop yet"),
			"POST /v1/oauth-apps": () => {
				hasApp = true;
				return { id: "oapp_1" };
			},
			"GET /v1/connections/conn_1": connection,
		});
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		screen.getByText(redirectUrl);
		await user.click(screen.getByRole("button", { name: "Continue to Shop" }));
		await screen.findByRole("dialog", { name: "Set up Shop" });
		screen.getByText(redirectUrl);
		screen.getByRole("button", { name: "Copy the redirect URL" });
		expect(screen.getByRole<HTMLAnchorElement>("link", { name: "https://shop.example/apps" }).target).toBe("_blank");
		screen.getByRole("link", { name: "Documentation of Shop" });
		await user.type(screen.getByLabelText(/^Client ID/), "id");
		await user.type(screen.getByLabelText(/^Client secret/), "secret");
		const save = screen.getByRole<HTMLButtonElement>("button", { name: "Save and continue" });
		expect(save.disabled).toBe(true);
		await user.type(screen.getByLabelText(/^Tenant/), "acme");
		await user.type(screen.getByLabelText(/^Signing secret/), "sealed");
		await user.click(save);
		const link = await screen.findByRole<HTMLAnchorElement>("link", { name: "Open Shop" });
		expect(link.href).toBe(authorizeUrl);
		expect(opened).toHaveBeenCalled();
		expect(calls.find(({ path }) => path === "/v1/oauth-apps")?.body).toEqual({
			integration: "shop",
			auth: "oauth2",
			client_id: "id",
			client_secret: "secret",
			fields: { tenant: "acme", signing: "sealed" },
			shared: false,
		});
		reportConsent({ state: "s1", connection: "conn_1" });
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalledWith(connection));
	});

	it("by consent tells others to ask an owner", async () => {
		const { screen, user } = await open(
			{ "POST /v1/connections/connect": errorResponse(409, "oauth_app_missing", "there is none"), ...empty },
			["write"],
		);
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		await user.click(screen.getByRole("button", { name: "Continue to Shop" }));
		await screen.findByText(/Ask an owner/);
		expect(screen.queryByLabelText(/^Client secret/)).toBeNull();
	});
});

describe("connecting an integration of the workspace", () => {
	const [shop] = integrations.data;
	const own = (hosts: string[]) => ({
		data: [{ ...shop, id: "x_shop", name: "Our shop", own: true, confirm_hosts: hosts }],
		next_cursor: null,
	});

	it("asks to confirm the hosts, and again if they have changed meanwhile", async () => {
		let hosts = ["api.shop.example", "{site}.shop.example"];
		const { screen, user, calls, onConnected } = await open({
			"GET /v1/integrations": () => own(hosts),
			"POST /v1/connections": ({ body }: Call) => {
				if (body.hosts.length === 1) return { ...connection, id: "conn_2" };
				hosts = ["api.shop.example"];
				return errorResponse(400, "invalid_request", "not confirmed", [
					{ pointer: "/hosts", message: "must be exactly the hosts that the credential may be sent to" },
				]);
			},
		});
		await screen.findByRole("heading", { name: "described by this workspace" });
		await user.click(screen.getByRole("button", { name: "Our shop" }));
		await user.type(await screen.findByLabelText(/^Token/), "abc");
		const section = screen.getByRole("region", { name: "Where the credential is sent" });
		expect(section.textContent).toContain("People of this workspace have described the integration Our shop");
		for (const host of hosts) expect(section.textContent).toContain(host);
		expect(section.textContent).toContain("Names in braces");
		const connect = screen.getByRole<HTMLButtonElement>("button", { name: "Connect" });
		expect(connect.disabled).toBe(true);
		await user.click(screen.getByRole("checkbox", { name: /^The credential may be sent to these hosts/ }));
		await user.click(connect);
		await screen.findByText(/Must be exactly the hosts/);
		const box = await screen.findByRole<HTMLInputElement>("checkbox", { name: /may be sent to this host/ });
		expect([box.checked, connect.disabled]).toEqual([false, true]);
		await user.click(box);
		await user.click(connect);
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalled());
		expect(calls.filter(({ method }) => method === "POST").at(-1)?.body).toEqual({
			name: "shop-2",
			auth: "api_key",
			fields: { token: "abc" },
			integration: "x_shop",
			hosts: ["api.shop.example"],
		});
	});

	it("by consent sends the hosts before the other window opens", async () => {
		vi.spyOn(window, "open").mockReturnValue(window);
		const { screen, user, calls } = await open({
			"GET /v1/integrations": own(["api.shop.example"]),
			"POST /v1/connections/connect": { authorize_url: authorizeUrl },
		});
		await user.click(await screen.findByRole("button", { name: "Our shop" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		const go = screen.getByRole<HTMLButtonElement>("button", { name: "Continue to Our shop" });
		expect(go.disabled).toBe(true);
		await user.click(screen.getByRole("checkbox", { name: /may be sent to this host/ }));
		await user.click(go);
		await screen.findByRole("link", { name: "Open it again" });
		const sent = calls.find(({ path }) => path === "/v1/connections/connect")?.body;
		expect(sent).toMatchObject({ integration: "x_shop", hosts: ["api.shop.example"] });
	});

	it("asks nothing for one that is part of Stepmill", async () => {
		const { screen, user } = await open({});
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		await screen.findByLabelText(/^Token/);
		expect(screen.queryByRole("checkbox")).toBeNull();
	});
});

describe("waiting for a consent", () => {
	afterEach(() => vi.useRealTimers());

	async function wait(more: object = {}) {
		vi.spyOn(window, "open").mockReturnValue(window);
		const drawn = await open({ "POST /v1/connections/connect": { authorize_url: authorizeUrl }, ...more });
		const { screen, user } = drawn;
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		const name = screen.getByRole("textbox", { name: /^Name/ });
		await user.clear(name);
		await user.type(name, "store");
		await user.click(screen.getByRole("button", { name: "Continue to Shop" }));
		return drawn;
	}

	it("ignores the outcome of another one", async () => {
		const { screen, onConnected } = await wait({ "GET /v1/connections/conn_1": connection });
		await screen.findByText(/Allow the connection in the window of Shop/);
		expect(screen.getByRole<HTMLAnchorElement>("link", { name: "Open it again" }).href).toBe(authorizeUrl);
		reportConsent({ state: "s2", error: "consent_refused", message: "refused elsewhere" });
		reportConsent({ error: "unauthorized", message: "of nobody" });
		reportConsent({ state: "s1", connection: "conn_1" });
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalledWith(connection));
		expect(screen.queryByText(/refused elsewhere|of nobody/)).toBeNull();
	});

	it("says why it was refused and what to check, and keeps what was entered", async () => {
		const { screen, user, onConnected } = await wait();
		await screen.findByRole("link", { name: "Open it again" });
		reportConsent({ state: "s1", error: "consent_refused", message: "the service did not allow it: access_denied" });
		expect((await screen.findByRole("alert")).textContent).toContain("access_denied");
		screen.getByText(/Try again and allow access/);
		screen.getByText(redirectUrl);
		await user.click(screen.getByRole("button", { name: "Try again" }));
		expect((await screen.findByRole<HTMLInputElement>("textbox", { name: /^Name/ })).value).toBe("store");
		expect(onConnected).not.toHaveBeenCalled();
	});

	it("ends after ten minutes", async () => {
		vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
		const consent = { url: authorizeUrl, opened: true };
		const { screen } = await renderPage(
			<ConsentWait
				title="Connect"
				serviceName="Shop"
				consent={consent}
				onClose={() => {}}
				onAgain={() => {}}
				onConnected={() => {}}
			/>,
		);
		expect(screen.queryByRole("alert")).toBeNull();
		act(() => void vi.advanceTimersByTime(10 * 60_000));
		expect(screen.getByRole("alert").textContent).toContain("try again");
		screen.getByRole("button", { name: "Try again" });
	});

	it("links to the public address from another one", async () => {
		const message = "this dashboard is open at http://127.0.0.1, but services redirect to https://flows.example.com";
		const { screen } = await wait({ "POST /v1/connections/connect": errorResponse(409, "wrong_host", message) });
		expect((await screen.findByRole("alert")).textContent).toContain("https://flows.example.com");
		const link = screen.getByRole<HTMLAnchorElement>("link", { name: "Open https://flows.example.com" });
		expect(new URL(link.href).origin).toBe("https://flows.example.com");
	});
});

describe("a custom connection with OAuth 2", () => {
	it("discovers the addresses from an issuer, and shows the redirect URL", async () => {
		vi.spyOn(window, "open").mockReturnValue(window);
		const { screen, user, calls } = await open({
			"POST /v1/connections/connect": { authorize_url: authorizeUrl },
		});
		await user.click(await screen.findByRole("button", { name: "Custom connection" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		screen.getByText(redirectUrl);
		screen.getByLabelText(/^Authorize URL/);
		await user.selectOptions(screen.getByRole("combobox", { name: "Addresses of the service" }), "issuer");
		expect(screen.queryByLabelText(/^Authorize URL/)).toBeNull();
		await user.type(screen.getByLabelText(/^Hosts/), "api.example.com");
		await user.type(screen.getByLabelText(/^Issuer/), "https://id.example.com");
		await user.type(screen.getByLabelText(/^Client ID/), "id");
		await user.click(screen.getByRole("button", { name: "Continue to the service" }));
		await screen.findByRole("link", { name: "Open it again" });
		expect(calls.find(({ path }) => path === "/v1/connections/connect")?.body).toEqual({
			name: "custom",
			auth: "oauth2",
			fields: { client_id: "id" },
			definition: { hosts: ["api.example.com"], grant: "authorization_code", issuer: "https://id.example.com" },
		});
	});

	it("with client credentials needs no redirect URL", async () => {
		const { screen, user } = await open({});
		await user.click(await screen.findByRole("button", { name: "Custom connection" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		await user.selectOptions(screen.getByRole("combobox", { name: "Grant" }), "client_credentials");
		expect(screen.queryByText(redirectUrl)).toBeNull();
		screen.getByRole("button", { name: "Connect" });
	});
});

describe("a custom connection with a device code", () => {
	const device = {
		state: "s1",
		user_code: "WDJB-MJHT",
		verification_url: "https://id.example.com/device",
		verification_url_complete: "https://id.example.com/device?code=WDJB-MJHT",
		expires_at: new Date(Date.now() + 600_000).toISOString(),
		retry_after: 0.01,
	};
	const pending = { connection: null, retry_after: 0.01 };

	async function ask(more: object) {
		const drawn = await open({ "POST /v1/connections/connect-device": device, ...more });
		const { screen, user } = drawn;
		await user.click(await screen.findByRole("button", { name: "Custom connection" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		await user.selectOptions(screen.getByRole("combobox", { name: "Grant" }), "device_code");
		expect(screen.queryByText(redirectUrl)).toBeNull();
		await user.type(screen.getByLabelText(/^Hosts/), "api.example.com");
		await user.type(screen.getByLabelText(/^Device URL/), "https://id.example.com/d");
		await user.type(screen.getByLabelText(/^Token URL/), "https://id.example.com/t");
		await user.type(screen.getByLabelText(/^Client ID/), "id");
		await user.click(screen.getByRole("button", { name: "Get a code" }));
		return drawn;
	}

	it("shows the code and where to enter it, and goes on after failures of the server", async () => {
		const outcomes: unknown[] = [pending];
		const { screen, onConnected, calls } = await ask({ "POST /v1/connections/poll-device": () => outcomes[0] });
		await screen.findByText("WDJB-MJHT");
		expect(screen.getByRole<HTMLAnchorElement>("link", { name: device.verification_url }).href).toBe(
			device.verification_url,
		);
		const complete = screen.getByRole<HTMLAnchorElement>("link", { name: /code filled in/ });
		expect([complete.href, complete.rel]).toEqual([device.verification_url_complete, "noreferrer"]);
		const polls = () => calls.filter(({ path }) => path === "/v1/connections/poll-device");
		await vi.waitFor(() => expect(polls().length).toBeGreaterThan(1));
		outcomes[0] = new Response("restarting", { status: 503, headers: { "Retry-After": "0.01" } });
		const before = polls().length;
		await vi.waitFor(() => expect(polls().length).toBeGreaterThan(before + 1));
		expect(screen.queryByRole("alert")).toBeNull();
		outcomes[0] = { connection, retry_after: null };
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalledWith(connection));
		expect(polls().at(-1)?.body).toEqual({ state: "s1" });
		expect(calls.find(({ path }) => path === "/v1/connections/connect-device")?.body).toEqual({
			name: "custom",
			auth: "oauth2",
			fields: { client_id: "id" },
			definition: {
				hosts: ["api.example.com"],
				grant: "device_code",
				device_url: "https://id.example.com/d",
				token_url: "https://id.example.com/t",
			},
		});
	});

	it("says why it was refused, and keeps what was entered", async () => {
		const { screen, user, onConnected } = await ask({
			"POST /v1/connections/poll-device": errorResponse(409, "consent_refused", "the access was not allowed"),
		});
		expect((await screen.findByRole("alert")).textContent).toContain("not allowed");
		expect(screen.queryByText("WDJB-MJHT")).toBeNull();
		await user.click(screen.getByRole("button", { name: "Try again" }));
		expect((await screen.findByLabelText<HTMLInputElement>(/^Device URL/)).value).toBe("https://id.example.com/d");
		expect(onConnected).not.toHaveBeenCalled();
	});

	it("shows why the service issues no code", async () => {
		const { screen } = await ask({
			"POST /v1/connections/connect-device": errorResponse(409, "consent_refused", "the service issued no code"),
		});
		expect((await screen.findByRole("alert")).textContent).toContain("issued no code");
		expect(screen.queryByText(redirectUrl)).toBeNull();
	});
});

describe("the TLS settings of a custom connection", () => {
	const pem = (kind: string) => `-----BEGIN ${kind}-----\nMIIB\n-----END ${kind}-----\n`;

	it("are folded away, and open at an error in them", async () => {
		const { screen, user, calls } = await open({
			"POST /v1/connections": errorResponse(400, "invalid_request", "the connection is not valid", [
				{ pointer: "/definition/ca", message: "must be certificates in PEM format" },
				{ pointer: "/fields/client_key", message: "does not belong to the certificate" },
			]),
		});
		await user.click(await screen.findByRole("button", { name: "Custom connection" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "digest");
		await user.type(screen.getByLabelText(/^Hosts/), "api.example.com");
		await user.type(screen.getByLabelText(/^User name/), "ada");
		await user.type(screen.getByLabelText(/^Password/), "a password");
		const section = screen.getByText("Client certificate and certificate authorities").closest("details");
		expect(section?.open).toBe(false);
		await user.click(screen.getByText("Client certificate and certificate authorities"));
		await user.type(screen.getByLabelText("Client certificate"), "cert");
		await user.type(screen.getByLabelText("Private key of the certificate"), "key");
		await user.type(screen.getByLabelText("Certificate authorities"), "ca");
		await user.click(screen.getByRole("button", { name: "Connect" }));
		await screen.findByText("Must be certificates in PEM format.");
		screen.getByText("Does not belong to the certificate.");
		expect(section?.open).toBe(true);
		expect(screen.queryByRole("alert")).toBeNull();
		expect(calls.find(({ method }) => method === "POST")?.body).toEqual({
			name: "custom",
			auth: "digest",
			fields: { username: "ada", password: "a password", client_certificate: "cert", client_key: "key" },
			definition: { hosts: ["api.example.com"], ca: "ca" },
		});
	});

	it("come from files, and are required if the certificate is the credential", async () => {
		const { screen, user, calls, onConnected } = await open({
			"POST /v1/connections": { ...connection, id: "conn_2" },
		});
		await user.click(await screen.findByRole("button", { name: "Custom connection" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "client_certificate");
		await user.type(screen.getByLabelText(/^Hosts/), "api.example.com");
		const connect = screen.getByRole<HTMLButtonElement>("button", { name: "Connect" });
		expect(connect.disabled).toBe(true);
		for (const [title, kind] of [
			["Client certificate", "CERTIFICATE"],
			["Private key of the certificate", "PRIVATE KEY"],
		] as const) {
			await user.upload(screen.getByLabelText(`Choose a file for ${title}`), new File([pem(kind)], "file.pem"));
			await vi.waitFor(() =>
				expect(screen.getByLabelText<HTMLTextAreaElement>(`${title} (required)`).value).toBe(pem(kind)),
			);
		}
		await user.click(connect);
		await vi.waitFor(() => expect(onConnected).toHaveBeenCalled());
		expect(calls.find(({ method }) => method === "POST")?.body).toEqual({
			name: "custom",
			auth: "client_certificate",
			fields: { client_certificate: pem("CERTIFICATE"), client_key: pem("PRIVATE KEY") },
			definition: { hosts: ["api.example.com"] },
		});
	});
});
