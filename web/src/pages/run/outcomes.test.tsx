import { waitFor } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import type { Step } from "@/shared/workflow/model";
import { renderPage } from "@/test/render";
import { Detail } from "./detail/detail";
import { RunHeader } from "./header";
import { type Head, RunRecord, type StepHead } from "./model/record";
import type { Selection } from "./selection";
import { StepTree } from "./step-tree";
import { useOutcomes } from "./use-run";

const head = {
	id: "run_1",
	workflow_id: "wf_1",
	workflow_version: 3,
	status: "succeeded",
	trigger: { type: "manual", id: null },
	started_at: "2026-11-15T09:00:00.000Z",
	finished_at: "2026-11-15T09:00:05.000Z",
	duration_ms: 5_000,
	error: null,
	waiting_for: null,
} as unknown as Head;

function stepHead(path: string, more: Partial<StepHead> = {}): StepHead {
	return {
		step_id: path,
		name: path,
		type: "log.write",
		status: "succeeded",
		attempt: 1,
		started_at: "2026-11-15T09:00:00.000Z",
		finished_at: "2026-11-15T09:00:01.000Z",
		duration_ms: 1_000,
		error: null,
		reason: null,
		attempts: [],
		pinned: false,
		...more,
	};
}

/** A finished run as the page shows it: its header, its steps, and the selected step. */
function Shown({ record, steps, path = "" }: { record: RunRecord; steps: Step[]; path?: string }) {
	const outcomes = useOutcomes("run_1", record, steps);
	const selection = { path, explicit: true, tab: "summary", view: "graph", select: () => {}, setTab: () => {} };
	const panes = {
		run: "run_1",
		record,
		outcomes,
		doc: { triggers: [], steps, layout: {} },
		selection: selection as unknown as Selection,
	};
	return (
		<>
			<RunHeader head={head} name="Orders" current={3} waits={false} outcomes={outcomes} />
			<StepTree {...panes} onOpen={() => {}} />
			<aside aria-label="Details">
				<Detail {...panes} />
			</aside>
		</>
	);
}

function recordOf(...steps: StepHead[]): RunRecord {
	const record = new RunRecord();
	record.head = head;
	for (const data of steps) record.apply({ type: "step", id: "", data });
	record.stop();
	return record;
}

describe("failures that did not stop the run", () => {
	const note: Step = { id: "note", name: "Note it", uses: "log.write", on_error: "continue" };
	const steps: Step[] = [{ id: "lines", name: "Each line", foreach: "x", steps: [note] }, note];
	const failed = { status: "failed", error: { code: "timed_out", message: "Too slow" } } as Partial<StepHead>;
	const record = recordOf(
		stepHead("lines", { type: "foreach" }),
		stepHead("lines[0].note"),
		stepHead("lines[7].note", failed),
		stepHead("note", failed),
	);
	const answers = {
		"GET /v1/runs/run_1/steps/lines/rounds": { total: 8, data: [], next_cursor: null },
		"GET /v1/runs/run_1/steps/note": { ...stepHead("note", failed), input: {}, output: {} },
	};

	it("are counted in the header, in the list of steps and for each round", async () => {
		const { screen } = await renderPage(<Shown record={record} steps={steps} path="lines[7]" />, { answers });
		expect(screen.getByText("2 failures handled")).toBeDefined();
		const marks = screen
			.getAllByRole("treeitem")
			.map((row) => row.querySelector("[aria-label$=handled]")?.getAttribute("aria-label"));
		// The loop, its round 8, its round 1, and the step after the loop.
		expect(marks).toEqual(["1 failure handled", "1 failure handled", undefined, undefined]);
		expect(screen.getByRole("complementary", { name: "Details" }).textContent).toContain("1 failure handled");
	});

	it("are explained in the details of the step", async () => {
		const { screen } = await renderPage(<Shown record={record} steps={steps} path="note" />, { answers });
		expect(screen.getByText(/The run went on in spite of this failure/)).toBeDefined();
		expect(screen.getByRole("img", { name: "Failed, and the run went on" })).toBeDefined();
	});
});

describe("a rejected approval", () => {
	const steps: Step[] = [
		{ id: "ask", name: "Ask the shop", uses: "flow.approval" },
		{ id: "note", name: "Note it", uses: "log.write" },
	];
	const record = recordOf(stepHead("ask", { type: "flow.approval" }), stepHead("note"));
	const answer = (output: object) => ({
		"GET /v1/runs/run_1/steps/ask": {
			...stepHead("ask", { type: "flow.approval" }),
			input: { message: "Ship it?" },
			output,
		},
	});

	it("is shown as rejected in the header, the list of steps and the details, with its comment", async () => {
		const answers = answer({ approved: false, by: "user_1", comment: "Out of stock" });
		const { screen } = await renderPage(<Shown record={record} steps={steps} path="ask" />, { answers });
		await screen.findByText("Approval rejected");
		const row = screen.getByRole("treeitem", { name: /Ask the shop/ });
		expect(row.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("Rejected");
		const other = screen.getByRole("treeitem", { name: /Note it/ });
		expect(other.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("Succeeded");
		const details = screen.getByRole("complementary", { name: "Details" });
		expect(details.textContent).toContain("Rejected");
		expect(details.textContent).toContain("Out of stock");
		expect(details.textContent).not.toContain("Succeeded");
	});

	it("by nobody says that the time ran out", async () => {
		const answers = answer({ approved: false, by: null, comment: null });
		const { screen } = await renderPage(<Shown record={record} steps={steps} path="ask" />, { answers });
		await screen.findByText(/Nobody answered in time/);
	});

	it("is not shown for one that was granted", async () => {
		const answers = answer({ approved: true, by: "user_1", comment: null });
		const { screen, calls } = await renderPage(<Shown record={record} steps={steps} path="ask" />, { answers });
		await waitFor(() => expect(calls.map((call) => call.path)).toContain("/v1/runs/run_1/steps/ask"));
		const row = screen.getByRole("treeitem", { name: /Ask the shop/ });
		expect(row.querySelector("[role=img]")?.getAttribute("aria-label")).toBe("Succeeded");
		expect(screen.queryByText("Approval rejected")).toBeNull();
	});
});
