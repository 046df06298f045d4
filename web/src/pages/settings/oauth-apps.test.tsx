import { describe, expect, it, vi } from "vitest";
import { errorResponse, redirectUrl, renderPage } from "@/test/render";
import OAuthApps from "./oauth-apps";

const way = { kind: "oauth2", help: null, consent: true, fields: [], app_fields: [], scopes: [] };
const service = { category: "crm", docs: "https://docs.example", keywords: [], hosts: [] };
const integrations = [
	{
		...service,
		id: "chat",
		name: "Chat",
		auth: [
			{ ...way, id: "bot", label: "Bot" },
			{ ...way, id: "user", label: "You" },
		],
	},
	{ ...service, id: "keyed", name: "Keyed", auth: [{ ...way, id: "api_key", label: "Key", consent: false }] },
];
const app = {
	id: "oapp_1",
	integration: "chat",
	auth: "user",
	client_id: "client-1",
	fields: { tenant: "acme" },
	shared: true,
	redirect_url: redirectUrl,
	hooks: [],
	updated_at: "2026-11-15T10:18:41.002Z",
};

async function draw(apps: object[], more: object = {}, session: object = {}) {
	return renderPage(<OAuthApps />, {
		answers: {
			"GET /v1/oauth-apps": { data: apps, next_cursor: null },
			"GET /v1/integrations": { data: integrations, next_cursor: null },
			...more,
		},
		session: { operator: true, ...session },
	});
}

describe("the OAuth apps", () => {
	it("are listed with their service, way, client ID and fields, and the redirect URL", async () => {
		const { screen } = await draw([app]);
		const row = await screen.findByRole("row", { name: /Chat/ });
		for (const text of ["Shared", "You", "client-1", "tenant: acme"]) expect(row.textContent).toContain(text);
		screen.getByText(redirectUrl);
		screen.getByRole("button", { name: "Copy the redirect URL" });
	});

	it("show where the service calls them", async () => {
		const hook = { hook: "chat.events", url: "https://stepmill.example/service-hooks/a", setup: "Your app → Events." };
		const { screen, user } = await draw([{ ...app, hooks: [hook] }]);
		await user.click(await screen.findByRole("button", { name: "Show where Chat calls" }));
		const dialog = await screen.findByRole("dialog", { name: "Where Chat calls" });
		for (const text of [hook.url, hook.setup]) expect(dialog.textContent).toContain(text);
		screen.getByRole("button", { name: "Copy the URL" });
	});

	it("are added for services that need one, with errors at their fields", async () => {
		let rejected = false;
		const { screen, user, calls } = await draw([], {
			"POST /v1/oauth-apps": () => {
				if (rejected) return app;
				rejected = true;
				return errorResponse(400, "invalid_request", "not valid", [
					{ pointer: "/client_secret", message: "must have at least 4 characters" },
				]);
			},
		});
		await user.click((await screen.findAllByRole("button", { name: "Add OAuth app" }))[0] as HTMLElement);
		const select = await screen.findByRole("combobox", { name: /^Service/ });
		expect([...select.querySelectorAll("option")].map((option) => option.textContent)).toEqual(["Choose…", "Chat"]);
		await user.selectOptions(select, "chat");
		await user.selectOptions(screen.getByRole("combobox", { name: "Used for" }), "user");
		await user.type(screen.getByLabelText(/^Client ID/), " client-1 ");
		await user.type(screen.getByLabelText(/^Client secret/), "abc");
		await user.click(screen.getByRole("checkbox", { name: "Share with all workspaces" }));
		await user.click(screen.getByRole("button", { name: "Add app" }));
		await screen.findByText("Must have at least 4 characters.");
		expect(screen.queryByRole("alert")).toBeNull();
		await user.type(screen.getByLabelText(/^Client secret/), "def");
		await user.click(screen.getByRole("button", { name: "Add app" }));
		await vi.waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
		expect(calls.filter(({ method }) => method === "POST").at(-1)?.body).toEqual({
			integration: "chat",
			auth: "user",
			client_id: "client-1",
			client_secret: "abcdef",
			fields: {},
			shared: true,
		});
	});

	it("are shared only by operators", async () => {
		const { screen, user } = await draw([], {}, { operator: false });
		await user.click((await screen.findAllByRole("button", { name: "Add OAuth app" }))[0] as HTMLElement);
		await user.selectOptions(await screen.findByRole("combobox", { name: /^Service/ }), "chat");
		expect(screen.queryByRole("checkbox")).toBeNull();
	});

	it("are replaced with the secrets entered again, and deleted", async () => {
		const { screen, user, calls } = await draw([app], { "DELETE /v1/oauth-apps/oapp_1": undefined });
		await user.click(await screen.findByRole("button", { name: "Replace the app for Chat" }));
		expect((await screen.findByLabelText<HTMLInputElement>(/^Client ID/)).value).toBe("client-1");
		expect(screen.getByLabelText<HTMLInputElement>(/^Client secret/).value).toBe("");
		expect(screen.getByRole<HTMLButtonElement>("button", { name: "Replace app" }).disabled).toBe(true);
		await user.click(screen.getByRole("button", { name: "Cancel" }));
		await user.click(await screen.findByRole("button", { name: "Delete the app for Chat" }));
		await user.click(await screen.findByRole("button", { name: "Delete app" }));
		await vi.waitFor(() => expect(calls.some(({ method }) => method === "DELETE")).toBe(true));
	});
});
