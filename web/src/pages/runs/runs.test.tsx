import { act, within } from "@testing-library/react";
import { useState } from "react";
import { describe, expect, it, vi } from "vitest";
import { type Call, errorResponse, renderPage } from "@/test/render";
import { BulkBar } from "./bulk-bar";
import { FilterBar } from "./filter-bar";
import type { Run } from "./merge";
import Runs from "./page";
import { RunTable } from "./run-table";

const run = (id: string, more: Partial<Run> = {}): Run =>
	({
		id,
		workflow_id: "wf_1",
		workflow_name: `Orders ${id}`,
		status: "succeeded",
		trigger: "schedule",
		draft: false,
		error: null,
		started_at: "2026-11-15T09:00:00.000Z",
		finished_at: "2026-11-15T09:00:01.500Z",
		duration_ms: 1_500,
		...more,
	}) as Run;

const failed = run("run_2", {
	status: "failed",
	draft: true,
	error: { message: "The server answered 503." } as Run["error"],
});
const names = { "GET /v1/workflows": { data: [{ id: "wf_1", name: "Orders" }], next_cursor: null } };

function Chosen({ runs }: { runs: Run[] }) {
	const [chosen, setChosen] = useState(runs);
	return <BulkBar chosen={chosen} onClear={() => setChosen([])} />;
}

describe("a row of the run list", () => {
	it("shows the workflow, status, trigger and duration", async () => {
		const { screen } = await renderPage(<RunTable runs={[run("run_1")]} picked={new Set()} />);
		const [, row] = screen.getAllByRole("row");
		expect(screen.getByRole("link", { name: "Orders run_1" }).getAttribute("href")).toBe("/runs/run_1");
		screen.getByRole("img", { name: "Succeeded" });
		for (const text of ["Succeeded", "Schedule", "1.5 s"]) expect(row?.textContent).toContain(text);
		expect(screen.queryByRole("checkbox")).toBeNull();
	});

	it("shows the error of a failed run, and that it was a draft", async () => {
		const { screen } = await renderPage(<RunTable runs={[failed]} picked={new Set()} />);
		screen.getByText("The server answered 503.");
		screen.getByText("Draft");
	});

	it("can be selected, individually and all at once", async () => {
		const onPick = vi.fn();
		const runs = [run("run_1"), failed];
		const { screen, user } = await renderPage(<RunTable runs={runs} picked={new Set(["run_1"])} onPick={onPick} />);
		await user.click(screen.getByRole("checkbox", { name: "Select the run of Orders run_2" }));
		await user.click(screen.getByRole("checkbox", { name: "Select the run of Orders run_1" }));
		await user.click(screen.getByRole("checkbox", { name: "Select all runs that are loaded" }));
		expect(onPick.mock.calls.map(([picked]) => [...picked])).toEqual([["run_1", "run_2"], [], ["run_1", "run_2"]]);
	});
});

describe("the filters", () => {
	it("change one value at a time, and debounce the search", async () => {
		vi.useFakeTimers({ shouldAdvanceTime: true });
		const onChange = vi.fn();
		const { screen, user } = await renderPage(<FilterBar filters={{}} onChange={onChange} onClear={() => {}} />, {
			answers: names,
		});
		await user.selectOptions(screen.getByRole("combobox", { name: "Status" }), "Failed");
		await user.click(screen.getByRole("combobox", { name: "Workflow" }));
		await user.click(await screen.findByRole("option", { name: "Orders" }));
		await user.type(screen.getByRole("searchbox", { name: "Search runs" }), "50");
		await act(() => vi.advanceTimersByTimeAsync(300));
		expect(onChange.mock.calls).toEqual([
			[{ status: "failed" }],
			[{ workflow: "wf_1" }],
			[{ text: "50" }, { replace: true }],
		]);
		expect(screen.queryByRole("button", { name: "Clear" })).toBeNull();
	});

	it("show time inputs only for a custom range", async () => {
		const { screen } = await renderPage(
			<FilterBar filters={{ since: "custom", workflow: "wf_gone" }} onChange={() => {}} onClear={() => {}} />,
			{ answers: names },
		);
		screen.getByLabelText("Started after");
		screen.getByLabelText("Started before");
		// A workflow that no longer exists stays selected.
		expect(screen.getByRole("combobox", { name: "Workflow" }).textContent).toContain("wf_gone");
	});

	it("are in the URL, and can be cleared if nothing matches", async () => {
		const answers = { ...names, "GET /v1/runs": { data: [], next_cursor: null } };
		const { screen, user, calls, router } = await renderPage(<Runs />, { answers, at: "/runs?status=failed" });
		await screen.findByText("No runs match these filters");
		expect(calls.find(({ path }) => path === "/v1/runs")?.query.get("status")).toBe("failed");
		await user.click(screen.getByRole("button", { name: "Clear filters" }));
		await screen.findByText("No runs yet");
		expect(router.state.location.searchStr).toBe("");
	});
});

describe("selected runs", () => {
	it("offer the applicable actions", async () => {
		const runs = [run("run_1"), failed, run("run_3", { status: "running", finished_at: null })];
		const { screen } = await renderPage(<Chosen runs={runs} />);
		const bar = within(screen.getByRole("region", { name: "Selected runs" }));
		bar.getByText("3 selected");
		expect(bar.getByRole<HTMLButtonElement>("button", { name: "Cancel 1" }).disabled).toBe(false);
		expect(bar.getByRole<HTMLButtonElement>("button", { name: "Retry 1" }).disabled).toBe(false);
	});

	it("can be all that match, not only those that are loaded", async () => {
		const page = (from: number, next: string | null) => ({
			data: Array.from({ length: 50 }, (_, at) => run(`run_${from + at}`, { status: "failed" })),
			next_cursor: next,
		});
		const at: Record<string, object> = { b: page(50, "c"), c: page(100, null) };
		const answers = {
			...names,
			"GET /v1/runs": ({ query }: Call) => at[query.get("cursor") ?? ""] ?? page(0, "b"),
		};
		const { screen, user } = await renderPage(<Runs />, { answers, at: "/runs?status=failed" });
		await user.click(await screen.findByRole("checkbox", { name: "Select all runs that are loaded" }));
		const bar = within(screen.getByRole("region", { name: "Selected runs" }));
		await user.click(bar.getByRole("button", { name: "Select all that match, not only these 50" }));
		await bar.findByText("150 selected");
		bar.getByRole("button", { name: "Retry 150" });
		expect(bar.queryByRole("button", { name: /Select all that match/ })).toBeNull();
	});

	it("are retried individually, and failures are listed", async () => {
		const other = run("run_4", { status: "failed" });
		const answers = {
			"POST /v1/runs/run_2/retry": {},
			"POST /v1/runs/run_4/retry": errorResponse(409, "run_not_retryable", "It is too old."),
		};
		const { screen, user, calls } = await renderPage(<Chosen runs={[failed, other]} />, { answers });
		await user.click(screen.getByRole("button", { name: "Retry 2" }));
		await user.click(screen.getByRole("button", { name: "Retry 2 runs" }));
		const dialog = within(await screen.findByRole("dialog", { name: "1 run retried" }));
		dialog.getByText("1 failed");
		dialog.getByText("It is too old.");
		expect(calls.map(({ path }) => path).sort()).toEqual(["/v1/runs/run_2/retry", "/v1/runs/run_4/retry"]);
		expect(screen.queryByRole("region", { name: "Selected runs" })).toBeNull();
	});
});
