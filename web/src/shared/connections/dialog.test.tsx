import { describe, expect, it, vi } from "vitest";
import { errorResponse, renderPage } from "@/test/render";
import { reportConsent } from "./consent";
import { ConnectDialog } from "./dialog";

const empty = { data: [], next_cursor: null };
const field = { help: null, required: true, default: null, enum: [], pattern: null, format: null, example: null };
const integrations = {
	data: [
		{
			id: "shop",
			name: "Shop",
			category: "commerce",
			docs: "",
			keywords: [],
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
					help: "Register at the shop.",
					consent: true,
					fields: [],
					app_fields: [],
					scopes: [],
				},
			],
		},
	],
	next_cursor: null,
};
const connection = { id: "conn_1", name: "shop", integration: "shop" };
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

	it("by consent asks an owner for the OAuth app, then waits for the other window", async () => {
		const opened = vi.spyOn(window, "open").mockReturnValue(null);
		let hasApp = false;
		const { screen, user, onConnected } = await open({
			"POST /v1/connections/connect": () =>
				hasApp
					? { authorize_url: "https://shop.example/authorize", redirect_url: "" }
					: errorResponse(409, "oauth_app_missing", "there is no OAuth app for Shop yet"),
			"POST /v1/oauth-apps": () => {
				hasApp = true;
				return { id: "oapp_1" };
			},
			"GET /v1/connections/conn_1": connection,
		});
		await user.click(await screen.findByRole("button", { name: "Shop" }));
		await user.selectOptions(await screen.findByRole("combobox", { name: "Authenticate with" }), "oauth2");
		await user.click(screen.getByRole("button", { name: "Continue to Shop" }));
		await screen.findByRole("dialog", { name: "Set up Shop" });
		screen.getByText(`${location.origin}/ui/v1/oauth/callback`);
		await user.type(screen.getByLabelText(/^Client ID/), "id");
		await user.type(screen.getByLabelText(/^Client secret/), "secret");
		await user.click(screen.getByRole("button", { name: "Save and continue" }));
		const link = await screen.findByRole<HTMLAnchorElement>("link", { name: "Open Shop" });
		expect(link.href).toBe("https://shop.example/authorize");
		expect(opened).toHaveBeenCalled();
		reportConsent({ connection: "conn_1" });
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
