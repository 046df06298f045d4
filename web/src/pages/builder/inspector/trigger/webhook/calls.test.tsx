import { describe, expect, it } from "vitest";
import { useReplayState } from "@/pages/builder/replay/store";
import { renderBuilder } from "@/test/builder";
import { Calls } from "./calls";

const hook = { id: "hook", type: "webhook" } as const;
const url = "https://flows.example/hooks/x";
const state = {
	id: "hook",
	type: "webhook",
	active: false,
	next_run_at: null,
	last_fired_at: null,
	last_run_id: null,
	last_error: null,
	not_fired: null,
	url,
	listening_until: null as string | null,
	subscription: null,
};
const call = (id: string, more: object = {}) => ({
	id,
	at: "2026-11-15T09:00:00Z",
	method: "POST",
	size: 8,
	outcome: "test",
	reason: null,
	run_id: null,
	headers: { "x-event": "order" },
	query: { q: "1" },
	payload: { n: 1 },
	...more,
});

/** Shows what the next run starts with. */
function InUse() {
	const [{ sample }] = useReplayState();
	return <output>{JSON.stringify(sample ?? null)}</output>;
}

async function render(answers: Record<string, unknown> = {}, triggers: object[] = [hook], active = false) {
	return renderBuilder(
		<>
			<Calls trigger={hook} />
			<InUse />
		</>,
		{ triggers },
		{
			answers: {
				"GET /v1/workflows/wf_1/triggers": { data: [{ ...state, active }], next_cursor: null },
				"GET /v1/workflows/wf_1/triggers/hook/requests": { data: [], next_cursor: null },
				...answers,
			} as never,
		},
	);
}

describe("trying a webhook", () => {
	it("shows a curl line, and listens until a test call comes, whose data is then used and can be pinned", async () => {
		let listening = false;
		const { screen, user, editor } = await render({
			"GET /v1/workflows/wf_1/triggers": () => ({
				data: [{ ...state, listening_until: listening ? "2026-11-15T09:05:00Z" : null }],
				next_cursor: null,
			}),
			"POST /v1/workflows/wf_1/triggers/hook/listen": () => {
				listening = true;
				return { ...state, listening_until: "2026-11-15T09:05:00Z" };
			},
			"GET /v1/workflows/wf_1/triggers/hook/requests": () => ({
				data: [...(listening ? [call("req_2")] : []), call("req_1", { payload: { old: true } })],
				next_cursor: null,
			}),
		});
		expect((await screen.findByText(/^curl -X POST/)).textContent).toContain(url);
		screen.getByText("null");
		await user.click(screen.getByRole("button", { name: "Listen for a test call" }));
		await screen.findByText(/Waiting for a call/);
		await screen.findByText(
			JSON.stringify({ payload: { n: 1 }, headers: { "x-event": "order" }, query: { q: "1" }, trigger: "hook" }),
			{},
			{ timeout: 10_000 },
		);
		await user.click(screen.getByRole("button", { name: "Pin it" }));
		expect(editor.doc.pinned).toEqual({
			"@hook": { payload: { n: 1 }, headers: { "x-event": "order" }, query: { q: "1" } },
		});
	});

	it("says why a call was rejected, and offers its data if it was verified", async () => {
		const { screen } = await render({
			"GET /v1/workflows/wf_1/triggers/hook/requests": {
				data: [
					call("req_2", { outcome: "signature_refused", reason: "the token is wrong", payload: null }),
					call("req_1", { outcome: "workflow_not_active", reason: "the workflow is not active" }),
				],
				next_cursor: null,
			},
		});
		await screen.findByText("Rejected: the token is wrong");
		await screen.findByText("Rejected: the workflow is not active");
		expect(screen.getAllByRole("button", { name: "Use" })).toHaveLength(1);
	});

	it("of an active workflow listens for nothing, because calls start runs", async () => {
		const { screen } = await render({}, [hook], true);
		await screen.findByText(/Each call starts a run/);
		expect(screen.queryByRole("button", { name: "Listen for a test call" })).toBeNull();
	});

	it("needs a URL, so it offers to save first", async () => {
		const { screen, user, server, editor } = await render({}, []);
		editor.apply((doc) => ({ doc: { ...doc, triggers: [hook] }, select: [] }));
		await user.click(await screen.findByRole("button", { name: "Save and show the URL" }));
		expect(server.now.data.triggers).toEqual([hook]);
	});
});
