import { describe, expect, it, vi } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { ChangeDialog } from "./change-dialog";
import Connections from "./page";
import { SettingsDialog } from "./settings-dialog";

const connection = {
	id: "conn_1",
	name: "shop",
	aliases: [],
	access: "everyone",
	members: [],
	created_by: "usr_1",
	integration: null,
	auth: "oauth2",
	status: "needs_reconnect",
	problem: "the token was revoked",
	account: "ada@shop.example",
	fields: { client_id: "id" },
	hosts: ["api.shop.example"],
	definition: {
		hosts: ["api.shop.example"],
		grant: "authorization_code",
		authorize_url: "https://id.shop.example/authorize",
		token_url: "https://id.shop.example/token",
	},
	used_by: [{ workflow_id: "wf_1", name: "Nightly", active: false, steps: ["call"], triggers: [] }],
	waiting_runs: 3,
	last_used_at: null,
	expires_at: null,
};

async function draw(more: object = {}) {
	return renderPage(<Connections />, {
		answers: {
			"GET /v1/connections": { data: [connection], next_cursor: null },
			"GET /v1/integrations": { data: [], next_cursor: null },
			...more,
		},
		toasts: true,
	});
}

describe("the connections", () => {
	it("are listed with account, workflows and waiting runs, and can be tested", async () => {
		const { screen, user } = await draw({
			"GET /v1/connections": { data: [{ ...connection, status: "connected", problem: null }], next_cursor: null },
			"POST /v1/connections/conn_1/test": { ok: false, problem: "the service returned 401", connection },
		});
		const row = await screen.findByRole("row", { name: /shop/ });
		for (const text of ["ada@shop.example", "1 workflow", "3", "never"]) expect(row.textContent).toContain(text);
		await user.click(screen.getByRole("button", { name: "Test shop" }));
		await screen.findByText(/The test of “shop” failed: the service returned 401/);
	});

	it("are reconnected from the list, and say why that is not possible", async () => {
		const { screen, user } = await draw({
			"POST /v1/connections/conn_1/reconnect": errorResponse(409, "wrong_host", "open it at https://flows.example.com"),
		});
		await user.click(await screen.findByRole("button", { name: "Reconnect shop" }));
		await screen.findByRole("dialog", { name: "Reconnect “shop”" });
		screen.getByRole("link", { name: "Open https://flows.example.com" });
	});

	it("name the workflows that keep them from being deleted", async () => {
		const used_by = [
			{ workflow_id: "wf_2", name: "Orders", active: true, steps: ["a", "b"], triggers: ["new"] },
			...connection.used_by,
		];
		const { screen, user } = await draw({
			"DELETE /v1/connections/conn_1": errorResponse(409, "connection_in_use", "it is used"),
			"GET /v1/connections/conn_1": { ...connection, used_by },
		});
		await user.click(await screen.findByRole("button", { name: "More actions for shop" }));
		await user.click(await screen.findByRole("menuitem", { name: "Delete…" }));
		await screen.findByRole("link", { name: "Nightly" });
		await screen.findByRole("link", { name: "Orders" });
		screen.getByText("steps a, b, trigger new");
		screen.getByText(/Pause or change them first/);
		await user.click(screen.getByRole("button", { name: "Delete connection" }));
		await screen.findByText(/it is used/i);
	});
});

describe("the name and access of a connection", () => {
	it("are changed together", async () => {
		const people = [
			{ id: "usr_1", name: "Ada", email: "ada@shop.example" },
			{ id: "usr_2", name: "", email: "grace@shop.example" },
		];
		const onClose = vi.fn();
		const { screen, user, calls } = await renderPage(
			<SettingsDialog connection={connection as never} onClose={onClose} />,
			{
				answers: {
					"PATCH /v1/connections/conn_1": connection,
					"GET /v1/people": { data: people, next_cursor: null },
				},
			},
		);
		await user.clear(await screen.findByRole("textbox", { name: /^Name/ }));
		await user.type(screen.getByRole("textbox", { name: /^Name/ }), "store");
		await user.selectOptions(screen.getByLabelText(/^May be used by/), "members");
		expect((screen.getByRole("button", { name: "Save" }) as HTMLButtonElement).disabled).toBe(true);
		await user.click(await screen.findByLabelText("grace@shop.example"));
		await user.click(screen.getByRole("button", { name: "Save" }));
		await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
		const sent = calls.find(({ body }) => body?.name !== undefined)?.body;
		expect(sent).toEqual({ name: "store", access: "members", members: ["usr_2"] });
	});
});

describe("changing a connection", () => {
	it("removes an emptied field and keeps a secret that is not entered", async () => {
		const account = { ...connection, auth: "service_account", fields: { subject: "ada@shop.example" } };
		const definition = { hosts: ["api.shop.example"], token_url: "https://id.shop.example/token" };
		const onClose = vi.fn();
		const { screen, user, calls } = await renderPage(
			<ChangeDialog connection={{ ...account, definition } as never} service={undefined} onClose={onClose} />,
			{ answers: { "PATCH /v1/connections/conn_1": connection } },
		);
		await screen.findByText(/Leave it empty to keep the stored value/);
		await user.clear(screen.getByLabelText(/^User to act for/));
		await user.click(screen.getByRole("button", { name: "Save" }));
		await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
		expect(calls[0]?.body.fields).toEqual({ subject: "" });
	});

	it("shows its client certificate, and removes it with the key", async () => {
		const account = { ...connection, auth: "bearer", fields: { client_certificate: "PEM" } };
		const onClose = vi.fn();
		const { screen, user, calls } = await renderPage(
			<ChangeDialog
				connection={{ ...account, definition: { hosts: ["api.shop.example"], ca: "CA" } } as never}
				service={undefined}
				onClose={onClose}
			/>,
			{ answers: { "PATCH /v1/connections/conn_1": connection } },
		);
		const certificate = await screen.findByLabelText<HTMLTextAreaElement>("Client certificate");
		expect(certificate.value).toBe("PEM");
		expect(certificate.closest("details")?.open).toBe(true);
		await user.clear(certificate);
		await user.type(screen.getByLabelText("Token"), "a token");
		await user.click(screen.getByRole("button", { name: "Save" }));
		await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
		expect(calls[0]?.body).toEqual({
			fields: { token: "a token", client_certificate: "", client_key: "" },
			definition: { hosts: ["api.shop.example"], ca: "CA" },
		});
	});
});

describe("a connection of an own integration that was changed", () => {
	const field = { help: null, required: true, default: null, enum: [], pattern: null, format: null, example: null };
	const way = { id: "token", kind: "bearer", label: "Token", help: null, consent: false, app_fields: [], scopes: [] };
	const service = {
		id: "x_shop",
		name: "Our shop",
		own: true,
		confirm_hosts: ["api.shop.example", "new.shop.example"],
		auth: [
			{ ...way, fields: [{ ...field, name: "token", title: "Token", secret: true }] },
			{ ...way, id: "oauth2", kind: "oauth2", consent: true, fields: [] },
		],
	};
	const own = { ...connection, integration: "x_shop", auth: "token", fields: {}, definition: null };

	it("gets its secrets again, with the hosts", async () => {
		const onClose = vi.fn();
		const { screen, user, calls } = await renderPage(
			<ChangeDialog connection={own as never} service={service as never} onClose={onClose} />,
			{ answers: { "PATCH /v1/connections/conn_1": connection } },
		);
		const token = await screen.findByLabelText(/^Token/);
		expect(screen.queryByText(/keep the stored value/)).toBeNull();
		const save = screen.getByRole<HTMLButtonElement>("button", { name: "Save" });
		await user.click(screen.getByRole("checkbox", { name: /may be sent to these hosts/ }));
		expect(save.disabled).toBe(true);
		await user.type(token, "abc");
		await user.click(save);
		await vi.waitFor(() => expect(onClose).toHaveBeenCalled());
		expect(calls[0]?.body).toEqual({ fields: { token: "abc" }, hosts: service.confirm_hosts });
	});

	it("asks for the hosts only once the server wants them confirmed", async () => {
		const { screen, user } = await renderPage(
			<ChangeDialog
				connection={{ ...own, status: "connected" } as never}
				service={service as never}
				onClose={() => {}}
			/>,
			{
				answers: {
					"PATCH /v1/connections/conn_1": errorResponse(400, "invalid_request", "not confirmed", [
						{ pointer: "/hosts", message: "is required" },
					]),
				},
			},
		);
		await user.type(await screen.findByLabelText("Token"), "abc");
		expect(screen.queryByRole("checkbox")).toBeNull();
		await user.click(screen.getByRole("button", { name: "Save" }));
		await screen.findByRole("checkbox", { name: /may be sent to these hosts/ });
		screen.getByText("Is required.");
	});

	it("is reconnected by consent only after its hosts are confirmed", async () => {
		const opened = vi.spyOn(window, "open").mockReturnValue(window);
		const { screen, user, calls } = await draw({
			"GET /v1/connections": { data: [{ ...own, auth: "oauth2" }], next_cursor: null },
			"GET /v1/integrations": { data: [service], next_cursor: null },
			"POST /v1/connections/conn_1/reconnect": { authorize_url: "https://shop.example/authorize?state=s1" },
		});
		await user.click(await screen.findByRole("button", { name: "Reconnect shop" }));
		await screen.findByRole("dialog", { name: "Reconnect “shop”" });
		const go = screen.getByRole<HTMLButtonElement>("button", { name: "Continue to Our shop" });
		expect([go.disabled, opened.mock.calls.length]).toEqual([true, 0]);
		await user.click(screen.getByRole("checkbox", { name: /may be sent to these hosts/ }));
		await user.click(go);
		await screen.findByRole("link", { name: "Open it again" });
		expect(calls.find(({ method }) => method === "POST")?.body).toEqual({ hosts: service.confirm_hosts });
		await user.click(screen.getByRole("button", { name: "Cancel" }));
		await user.click(screen.getByRole("button", { name: "Reconnect shop" }));
		expect((await screen.findByRole<HTMLInputElement>("checkbox")).checked).toBe(false);
	});
});
