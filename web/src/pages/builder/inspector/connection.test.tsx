import { describe, expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { ActionForm } from "./action";
import { ConnectionField } from "./connection";

const text = { type: "string" };
const action = (name: string, accepts_connection: boolean) => ({
	name,
	title: name,
	summary: name,
	accepts_connection,
	input_schema: { type: "object", properties: { url: text } },
	output_schema: null,
});
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
	definition: { hosts: ["a.example"], authorize_url: "https://a.example/a", token_url: "https://a.example/t" },
};
const answers = (status = "needs_reconnect") => ({
	"GET /v1/actions": { data: [action("calls.out", true), action("stays.in", false)], next_cursor: null },
	"GET /v1/connections": { data: [{ ...connection, status }], next_cursor: null },
	"GET /v1/integrations": { data: [], next_cursor: null },
});

describe("the connection of a step", () => {
	it("is offered by the actions that accept one", async () => {
		const step = { id: "one", uses: "calls.out" };
		const { screen } = await renderBuilder(
			<ActionForm step={step} pointer="/steps/0" />,
			{ steps: [step] },
			{ answers: answers() },
		);
		await screen.findByRole("combobox", { name: "Connection" });
	});

	it("is not offered by other actions", async () => {
		const step = { id: "one", uses: "stays.in" };
		const { screen } = await renderBuilder(
			<ActionForm step={step} pointer="/steps/0" />,
			{ steps: [step] },
			{ answers: answers() },
		);
		await screen.findByText("stays.in", { selector: ".font-medium" });
		expect(screen.queryByRole("combobox", { name: "Connection" })).toBeNull();
	});

	it("is one of the integration that the service of the operation shares", async () => {
		const step = { id: "one", uses: "chat_rooms.send" };
		const of = (name: string, integration: string) => ({
			...connection,
			id: name,
			name,
			integration,
			status: "connected",
		});
		const service = { id: "chat_rooms", name: "Chat rooms", category: "communication", docs: "https://chat.example" };
		const rooms = { ...service, keywords: [], connection: "chat", operations: [], hosts: [], auth: [] };
		const { screen, user } = await renderBuilder(
			<ActionForm step={step} pointer="/steps/0" />,
			{ steps: [step] },
			{
				answers: {
					...answers(),
					"GET /v1/actions/chat_rooms.send": { ...action("chat_rooms.send", true), integration: "chat" },
					"GET /v1/connections": { data: [of("team", "chat"), of("other", "mail")], next_cursor: null },
					"GET /v1/integrations": { data: [rooms], next_cursor: null },
				},
			},
		);
		await screen.findByRole("option", { name: "team" });
		expect(screen.queryByRole("option", { name: "other" })).toBeNull();
		await user.click(screen.getByRole("button", { name: "New connection…" }));
		await screen.findByRole("dialog", { name: /Chat rooms/ });
	});

	it("says that it must be reconnected, and offers that", async () => {
		const { screen } = await renderBuilder(
			<ConnectionField value="shop" pointer="/steps/0" />,
			{ steps: [{ id: "one", uses: "calls.out", connection: "shop" }] },
			{ answers: answers() },
		);
		await screen.findByText(/“shop” must be reconnected/);
		await screen.findByRole("button", { name: "Reconnect" });
	});

	it("leads to a connection that fails, and marks one that does not exist", async () => {
		const { screen } = await renderBuilder(
			<>
				<ConnectionField value="shop" pointer="/steps/0" />
				<ConnectionField value="gone" pointer="/triggers/0" />
			</>,
			{ steps: [{ id: "one", uses: "calls.out", connection: "shop" }] },
			{ answers: answers("failing") },
		);
		await screen.findByText(/The connection “shop” does not work/);
		screen.getByRole("link", { name: "Open shop" });
		await screen.findByRole("option", { name: "gone (does not exist)" });
	});
});
