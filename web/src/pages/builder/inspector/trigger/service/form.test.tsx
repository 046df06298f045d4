import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";
import { useSelected } from "@/pages/builder/state";
import { renderBuilder } from "@/test/builder";
import { InspectorScope } from "../../scope";
import { TriggerForm } from "../form";

const connection = {
	id: "conn_1",
	name: "office",
	aliases: [],
	access: "everyone",
	members: [],
	created_by: "usr_1",
	integration: "google",
	account: "ada@example.com",
	auth: "oauth2",
	status: "connected",
	definition: null,
};

const detail = {
	type: "gmail.new_message",
	title: "New message",
	summary: null,
	every: "1m",
	deprecated: null,
	connection: "google",
	input_schema: {
		type: "object",
		properties: { label: { type: "string", title: "Label", default: "INBOX", "x-options": "list_labels" } },
	},
	sample: { subject: "Hello" },
};

/** Shows the form of the only trigger. */
function Form() {
	const selected = useSelected();
	if (selected.kind !== "trigger") return null;
	return (
		<InspectorScope node="@mail">
			<TriggerForm trigger={selected.trigger} pointer={selected.pointer} />
		</InspectorScope>
	);
}

async function render(type: string, found: unknown) {
	const drawn = await renderBuilder(
		<Form />,
		{ triggers: [{ id: "mail", type, connection: "office" }] },
		{
			answers: {
				"GET /v1/schemas/workflow.json": {
					$defs: { trigger: { properties: { every: { type: "string", title: "Every" } } } },
				},
				[`GET /v1/integrations/gmail/triggers/${type.split(".")[1]}`]: found,
				"GET /v1/connections": { data: [connection], next_cursor: null },
				"GET /v1/integrations": { data: [], next_cursor: null },
				"POST /v1/connections/conn_1/options": {
					options: [{ value: "Label_7", label: "Invoices" }],
					fields: null,
					more: false,
				},
			},
		},
	);
	drawn.editor.select(["@mail"]);
	return drawn;
}

it("edits the settings of a service's trigger, and fills dropdowns from its account", async () => {
	const { editor, calls } = await render("gmail.new_message", detail);
	const field = await screen.findByRole("combobox", { name: "Label" });
	await userEvent.click(field);
	await userEvent.click(await screen.findByRole("option", { name: /Invoices/ }));
	await waitFor(() => expect(editor.doc.triggers[0]?.with).toEqual({ label: "Label_7" }));
	const asked = calls.find(({ path }) => path.endsWith("/options"));
	expect(asked?.body).toEqual({ trigger: "gmail.new_message", input: "label", with: {} });
	await userEvent.type(screen.getByLabelText("Every"), "5m");
	expect(editor.doc.triggers[0]?.every).toBe("5m");
});

it("says that a type does not exist", async () => {
	await render("gmail.new_mesage", () => new Response(null, { status: 404 }));
	await screen.findByText("There is no trigger “gmail.new_mesage”.");
});
