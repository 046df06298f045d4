import { describe, expect, it, vi } from "vitest";
import type { Step } from "@/shared/workflow/model";
import { renderPage } from "@/test/render";
import { Banner } from "./banner";
import { type Head, RunRecord, type StepHead } from "./model/record";
import type { Selection } from "./selection";

const head = {
	id: "run_1",
	workflow_id: "wf_1",
	workflow_version: 3,
	status: "failed",
	started_at: "2026-11-15T09:00:00.000Z",
	finished_at: "2026-11-15T09:00:05.000Z",
	error: null,
	waiting_for: null,
} as unknown as Head;

const step = { step_id: "get", name: "Get the order", type: "http.request", status: "failed", attempt: 2 };
const steps: Step[] = [{ id: "get", uses: "http.request", retry: { max_attempts: 5 } }];

function recordOf(own: Partial<Head>, of: Partial<StepHead> = {}): RunRecord {
	const record = new RunRecord();
	record.head = { ...head, ...own } as Head;
	record.steps.set("get", { ...step, ...of } as StepHead);
	return record;
}

const chosen = () =>
	({ path: "", explicit: false, tab: undefined, view: "graph", select: vi.fn() }) as unknown as Selection;

describe("the banner of a run", () => {
	const error = { step_id: "get", code: "http_error", message: "The server answered 503." } as Head["error"];

	it("shows the error, step, attempt and a hint", async () => {
		const selection = chosen();
		const { screen, user } = await renderPage(
			<Banner record={recordOf({ error })} selection={selection} steps={steps} />,
		);
		const banner = screen.getByRole("region", { name: "Why the run failed" });
		for (const text of [
			"The server answered 503.",
			"http_error",
			"Attempt 2 of 5",
			"A 5xx status means that it failed: retry later",
		])
			expect(banner.textContent).toContain(text);
		await user.click(screen.getByRole("button", { name: "Get the order" }));
		expect(selection.select).toHaveBeenCalledWith("get");
	});

	it("copies the details of the failure", async () => {
		const { screen, user } = await renderPage(
			<Banner record={recordOf({ error })} selection={chosen()} steps={steps} />,
		);
		const write = vi.spyOn(navigator.clipboard, "writeText");
		await user.click(screen.getByRole("button", { name: "Copy details" }));
		const text = write.mock.calls[0]?.[0] ?? "";
		expect(text).toContain("Run run_1 of wf_1, version 3");
		expect(text).toContain("Step get (http.request), attempt 2");
		expect(text).toContain("http_error: The server answered 503.");
	});

	it("shows what the run is waiting for", async () => {
		const waits = { step_id: "get", reason: "waits for an answer", until: null } as Head["waiting_for"];
		const record = recordOf({ status: "running", waiting_for: waits });
		const { screen } = await renderPage(<Banner record={record} selection={chosen()} steps={steps} />);
		expect(screen.getByRole("region", { name: "What the run is waiting for" }).textContent).toContain(
			"Waits for an answer",
		);
		expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
	});

	describe("that waits for a decision", () => {
		const record = () =>
			recordOf(
				{ status: "running", waiting_for: { step_id: "get", reason: "waits for an answer", until: null } as never },
				{ type: "flow.approval", status: "waiting" },
			);
		const answers = {
			"GET /v1/runs/run_1/steps/get": { input: { message: "Ship it?" } },
			"POST /v1/runs/run_1/steps/get/resume": {},
		};

		it("sends the decision with its comment and data", async () => {
			const { screen, user, calls } = await renderPage(
				<Banner record={record()} selection={chosen()} steps={steps} />,
				{
					answers,
					toasts: true,
				},
			);
			await screen.findByText("Ship it?");
			await user.click(screen.getByRole("button", { name: "Approve" }));
			const data = await screen.findByRole("textbox", { name: "Data" });
			await user.type(screen.getByRole("textbox", { name: "Comment" }), "ok");
			await user.type(data, "not JSON{Tab}");
			await user.click(screen.getByRole("button", { name: "Approve" }));
			expect(screen.getByText(/^This is not valid JSON/)).toBeDefined();
			expect(calls.filter((call) => call.method === "POST")).toEqual([]);
			await user.clear(data);
			await user.type(data, "12");
			await user.click(screen.getByRole("button", { name: "Approve" }));
			await screen.findByText("Approved. The run continues.");
			expect(calls.at(-1)?.body).toEqual({ approved: true, comment: "ok", data: 12 });
		});

		it("offers no decision without execute access", async () => {
			const { screen } = await renderPage(<Banner record={record()} selection={chosen()} steps={steps} />, {
				answers,
				scopes: ["read"],
			});
			await screen.findByText("Ship it?");
			expect(screen.queryByRole("button", { name: "Approve" })).toBeNull();
		});
	});
});
