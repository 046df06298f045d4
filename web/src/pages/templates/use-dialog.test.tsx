import { waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { type Call, errorResponse, renderPage } from "@/test/render";
import type { Template } from "./data";
import { UseDialog } from "./use-dialog";
import type { Input } from "./values";

const input = (name: string, type: string, title: string, more: Partial<Input> = {}): Input => ({
	name,
	type,
	title,
	help: null,
	required: true,
	default: null,
	example: null,
	pattern: null,
	options: null,
	integration: null,
	services: null,
	lists: null,
	...more,
});

const listing = { operation: null, trigger: null, connection: "sheets", with: {} };

const template: Template = {
	name: "rows",
	title: "Mail new rows",
	description: "Sends each new row.",
	category: "Reports",
	first_run: false,
	triggers: [],
	uses: ["sheets.append_row"],
	inputs: [
		input("sheets", "connection", "Google account", { integration: "google", services: ["gmail", "sheets"] }),
		input("file", "account", "Spreadsheet", {
			lists: { ...listing, operation: "sheets.append_row", input: "spreadsheet" },
		}),
		input("sheet", "account", "Sheet", {
			lists: { ...listing, operation: "sheets.append_row", input: "sheet", with: { spreadsheet: "file" } },
		}),
		input("to", "email", "Recipient", { example: "ann@acme.test", help: "Gets the report." }),
		input("limit", "integer", "Limit", { default: 10, required: false }),
		input("kind", "choice", "Kind", { options: [{ value: "a", label: "All" }], default: "a", required: false }),
	],
	payload: {},
	source: "steps: []\n",
};

const connection = (name: string) => ({
	id: `conn_${name}`,
	name,
	aliases: [],
	access: "everyone",
	members: [],
	created_by: "usr_1",
	integration: "google",
	account: "ann@acme.test",
	auth: "oauth2",
	status: "connected",
	definition: null,
});

const input_schema = {
	type: "object",
	properties: {
		spreadsheet: { type: "string", title: "Spreadsheet", "x-options": "list_files" },
		sheet: {
			type: ["integer", "string"],
			title: "Sheet",
			"x-options": "list_sheets",
			"x-depends-on": ["spreadsheet"],
			"x-needs": ["spreadsheet"],
		},
	},
};

function render(answers: Record<string, unknown> = {}, names = ["office"]) {
	return renderPage(<UseDialog template={template} onClose={() => {}} />, {
		answers: {
			"GET /v1/connections": { data: names.map(connection), next_cursor: null },
			"GET /v1/integrations": {
				data: [
					{ id: "gmail", name: "Gmail", category: "communication", auth: [] },
					{ id: "sheets", name: "Google Sheets", category: "productivity", auth: [] },
					{
						id: "google",
						name: "Google",
						category: "productivity",
						auth: [{ id: "bearer", label: "Token", fields: [] }],
					},
				],
				next_cursor: null,
			},
			"GET /v1/actions/sheets.append_row": { name: "sheets.append_row", input_schema },
			"POST /v1/connections/conn_office/options": ({ body }: Call) => ({
				options: body.input === "sheet" ? [{ value: 0, label: "Orders" }] : [{ value: "1Bx", label: "Sales" }],
				fields: null,
				more: false,
			}),
			...answers,
		},
	});
}

describe("the form of a template", () => {
	it("asks for a connection, lists what its account has, and creates the workflow", async () => {
		const { screen, user, calls } = await render({
			"POST /v1/templates/rows/workflows": { id: "wf_1" },
		});
		await waitFor(() =>
			expect(screen.getByRole<HTMLSelectElement>("combobox", { name: /^Google account/ }).value).toBe("office"),
		);
		await screen.findByText("It is used for Gmail and Google Sheets.");
		await user.click(await screen.findByRole("combobox", { name: /^Sheet/ }));
		await screen.findByText("Choose “Spreadsheet” first. You can also enter a value.");
		await user.click(screen.getByRole("combobox", { name: /^Spreadsheet/ }));
		await user.click(await screen.findByRole("option", { name: /Sales/ }));
		await user.click(screen.getByRole("combobox", { name: /^Sheet/ }));
		await user.click(await screen.findByRole("option", { name: /Orders/ }));
		await user.type(screen.getByRole("textbox", { name: /^Recipient/ }), "ann@acme.test");
		await user.click(screen.getByRole("button", { name: "Create workflow" }));
		await waitFor(() => expect(calls.at(-1)?.path).toBe("/v1/templates/rows/workflows"));
		expect(calls.at(-1)?.body).toEqual({
			name: "Mail new rows",
			inputs: { sheets: "office", file: "1Bx", sheet: 0, to: "ann@acme.test", limit: 10, kind: "a" },
		});
		const asked = calls.filter(({ path }) => path.endsWith("/options")).map(({ body }) => body);
		expect(asked).toContainEqual({ operation: "sheets.append_row", input: "sheet", with: { spreadsheet: "1Bx" } });
	});

	it("shows what is wrong at its field, and moves the focus there", async () => {
		const { screen, user } = await render({
			"POST /v1/templates/rows/workflows": errorResponse(
				400,
				"invalid_request",
				"/inputs/to: must be an email address",
				[{ pointer: "/inputs/to", message: "must be an email address" }],
			),
		});
		const to = await screen.findByRole("textbox", { name: /^Recipient/ });
		await user.type(to, "ann");
		await user.click(screen.getByRole("button", { name: "Create workflow" }));
		await screen.findByText("Must be an email address.");
		await waitFor(() => expect(document.activeElement).toBe(to));
	});

	it("shows an error that is about no field", async () => {
		const { screen, user } = await render({
			"POST /v1/templates/rows/workflows": errorResponse(403, "plan_limit_exceeded", "The plan allows 3 workflows."),
		});
		await user.click(await screen.findByRole("button", { name: "Create workflow" }));
		await screen.findByText(/The plan allows 3 workflows/);
	});

	it("makes a connection in place", async () => {
		const { screen, user } = await render({}, []);
		await user.click(await screen.findByRole("button", { name: "New connection…" }));
		await screen.findByRole("dialog", { name: /Google/ });
	});

	it("leaves the choice among several connections to the person", async () => {
		const { screen } = await render({}, ["office", "home"]);
		await screen.findByRole("option", { name: "home" });
		expect(screen.getByRole<HTMLSelectElement>("combobox", { name: /^Google account/ }).value).toBe("");
	});
});
