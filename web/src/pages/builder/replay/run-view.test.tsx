import { describe, expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { useReplay } from "./replay";
import { RunView } from "./run-view";

const hook = { id: "hook", type: "webhook" };
const started = { id: "run_1", status: "running", finished_at: null, steps: [], trigger: {}, draft: true };

/** The button of the header. */
function Run() {
	const { run } = useReplay();
	return (
		<button type="button" onClick={run}>
			Run
		</button>
	);
}

async function render(definition: object, answers: object = {}) {
	return renderBuilder(
		<>
			<Run />
			<RunView />
		</>,
		definition,
		{
			answers: {
				"POST /v1/workflows/wf_1/runs": started,
				"GET /v1/runs/run_1": started,
				"GET /v1/workflows/wf_1/triggers/hook/requests": { data: [], next_cursor: null },
				...answers,
			} as never,
		},
	);
}

describe("a draft that nothing has started yet", () => {
	it("asks what the first run starts with, and sends a call with all of its data", async () => {
		const call = {
			id: "req_1",
			at: "2026-11-15T09:00:00Z",
			method: "POST",
			outcome: "test",
			reason: null,
			run_id: null,
			headers: { "x-event": "order" },
			query: { q: "1" },
			payload: { n: 1 },
		};
		const { screen, user, calls } = await render(
			{ triggers: [hook] },
			{ "GET /v1/workflows/wf_1/triggers/hook/requests": { data: [call], next_cursor: null } },
		);
		await screen.findByRole("option", { name: /^Test call/ });
		await user.click(screen.getByRole("button", { name: "Run" }));
		await screen.findByText(/Nothing has started this workflow yet/);
		const starts = () => calls.filter((one) => one.path === "/v1/workflows/wf_1/runs" && one.method === "POST");
		expect(starts()).toHaveLength(0);
		await user.click(screen.getByRole("button", { name: "Run the draft" }));
		await expect.poll(() => starts().length).toBe(1);
		expect(starts()[0]?.body).toMatchObject({
			payload: { n: 1 },
			trigger_id: "hook",
			headers: { "x-event": "order" },
			query: { q: "1" },
		});
	});

	it("starts at once if nothing reads what started it", async () => {
		const { screen, user, calls } = await render({ steps: [{ id: "a", uses: "log.write", with: { message: "a" } }] });
		await user.click(screen.getByRole("button", { name: "Run" }));
		await expect.poll(() => calls.filter((one) => one.method === "POST" && one.path.endsWith("/runs")).length).toBe(1);
		expect(screen.queryByText(/Nothing has started/)).toBeNull();
	});
});
