import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { useSelected } from "@/pages/builder/state";
import { renderBuilder } from "@/test/builder";
import { InspectorScope } from "../scope";
import { TriggerForm } from "./form";

const subscription = { status: "active", expires_at: null, last_error: null, url: null, setup: null };

const state = {
	id: "bot",
	type: "telegram.new_message",
	active: true,
	next_run_at: null,
	last_fired_at: null,
	last_run_id: null,
	last_error: null,
	not_fired: null,
	url: null,
	subscription,
};

/** Shows the form of the only trigger. */
function Form() {
	const selected = useSelected();
	if (selected.kind !== "trigger") return null;
	return (
		<InspectorScope node="@bot">
			<TriggerForm trigger={selected.trigger} pointer={selected.pointer} />
		</InspectorScope>
	);
}

async function render(...states: unknown[]) {
	let asked = 0;
	const drawn = await renderBuilder(
		<Form />,
		{ triggers: [{ id: "bot", type: "telegram.new_message", connection: "my-bot" }] },
		{
			answers: {
				"GET /v1/schemas/workflow.json": { $defs: { trigger: { properties: { every: { type: "string" } } } } },
				"GET /v1/integrations/telegram/triggers/new_message": {
					type: "telegram.new_message",
					title: "New message",
					summary: null,
					every: null,
					deprecated: null,
					connection: "telegram",
					input_schema: { type: "object", properties: {} },
					sample: {},
				},
				"GET /v1/connections": { data: [], next_cursor: null },
				"GET /v1/integrations": { data: [], next_cursor: null },
				"GET /v1/workflows/wf_1/triggers": () => ({
					data: [states[Math.min(asked++, states.length - 1)]],
					next_cursor: null,
				}),
			},
		},
	);
	drawn.editor.select(["@bot"]);
}

it("says that the service calls, and asks for no interval", async () => {
	await render(state);
	expect(await screen.findByText("The service calls when there is something new.")).toBeTruthy();
	expect(await screen.findByText("It calls when there is something new.")).toBeTruthy();
	expect(screen.queryByLabelText("Every")).toBeNull();
});

it("says why the service could not be told", async () => {
	const last_error = {
		at: "2026-11-18T09:00:00Z",
		code: "invalid",
		message: "Telegram: An HTTPS URL must be provided",
	};
	await render({ ...state, subscription: { ...subscription, status: "failing", last_error } });
	expect(await screen.findByText(/could not be told where to call/)).toBeTruthy();
	expect(await screen.findByText("Telegram: An HTTPS URL must be provided")).toBeTruthy();
});

it("shows the URL that people have to enter at the service, and where", async () => {
	const manual = {
		...subscription,
		status: "manual",
		url: "https://one.example/service-hooks/x",
		setup: "Your app → Events",
	};
	await render({ ...state, subscription: manual });
	expect(await screen.findByText("https://one.example/service-hooks/x")).toBeTruthy();
	expect(await screen.findByText("Your app → Events")).toBeTruthy();
	expect(screen.getByRole("button", { name: "Copy URL" })).toBeTruthy();
});

it("looks again while the service is being told", async () => {
	await render({ ...state, subscription: { ...subscription, status: "pending" } }, state);
	expect(await screen.findByText("It is being told where to call.")).toBeTruthy();
	expect(await screen.findByText("It calls when there is something new.", {}, { timeout: 10_000 })).toBeTruthy();
});
