import { expect, it } from "vitest";
import { renderBuilder } from "@/test/builder";
import { RunStrip } from "./run-strip";
import { type FollowedRun, stepIdOf } from "./stream-state";

const ask = {
	step_id: "ask",
	name: "Ask",
	type: "flow.approval",
	status: "waiting",
	attempt: 1,
	input: { message: "Ship it?" },
	reason: "waits for approval",
};
const head = { id: "run_1", status: "running", draft: true, error: null };

const render = (more: object, answers: object = {}) =>
	renderBuilder(
		<RunStrip run="run_1" followed={{ head, steps: [ask], ended: false, ...more } as unknown as FollowedRun} />,
		{ steps: [{ id: "ask", name: "Ask the boss", uses: "flow.approval", with: { message: "Ship it?" } }] },
		{ answers: answers as never },
	);

it("approves, rejects and cancels a draft run that waits", async () => {
	const { screen, user, calls } = await render(
		{},
		{
			"POST /v1/runs/run_1/steps/ask/resume": {},
			"POST /v1/runs/run_1/cancel": {},
			"GET /v1/approvals": { data: [], next_cursor: null },
		},
	);
	screen.getByText("Waiting");
	screen.getByText("Ask the boss");
	screen.getByRole("button", { name: "Reject" });
	await user.click(screen.getByRole("button", { name: "Approve" }));
	await user.click(screen.getAllByRole("button", { name: "Approve" }).at(-1) as HTMLElement);
	await expect.poll(() => calls.find(({ path }) => path.endsWith("/resume"))?.body).toEqual({ approved: true });
	await expect.poll(() => screen.queryByRole("dialog")).toBeNull();
	await user.click(screen.getByRole("button", { name: "Cancel run" }));
	await user.click(screen.getAllByRole("button", { name: "Cancel run" }).at(-1) as HTMLElement);
	await expect.poll(() => calls.some(({ path }) => path === "/v1/runs/run_1/cancel")).toBe(true);
});

it("offers nothing for a run that has ended", async () => {
	const { screen } = await render({ ended: true, head: { ...head, status: "succeeded" } });
	expect(screen.queryByRole("button", { name: /Approve|Reject|Cancel/ })).toBeNull();
});

it("knows the step of a path", () => {
	expect(["ask", "lines[3].ask", "a[0].b[12].ask", "lines[3]"].map(stepIdOf)).toEqual(["ask", "ask", "ask", "lines"]);
});
