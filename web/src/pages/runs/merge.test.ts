import { describe, expect, it } from "vitest";
import { queryOf } from "./filters";
import { merge, type Pages, type Run, shownStatus } from "./merge";

function run(n: number, status: Run["status"] = "running"): Run {
	return {
		id: `run_${n}`,
		workflow_id: "wf",
		workflow_name: "Order",
		status,
		trigger: "manual",
		draft: false,
		started_at: new Date(n * 1000).toISOString(),
		finished_at: null,
		duration_ms: 0,
		error: null,
		started_by: null,
		waiting_for: null,
	};
}

const list = (pages: Pages) => pages.pages.flatMap((page) => page.data.map((one) => `${one.id} ${one.status}`));

describe("merge", () => {
	const old: Pages = {
		pages: [
			{ data: [run(4), run(3)], next_cursor: "a" },
			{ data: [run(2), run(1)], next_cursor: "b" },
		],
		pageParams: [undefined, "a"],
	};

	it("adds new runs on top and keeps those pushed off the first page", () => {
		const fresh = { data: [run(5), run(4, "failed")], next_cursor: "c" };
		const now = merge(old, fresh, [{ run_id: "run_1", status: "succeeded" }], undefined);
		expect(list(now)).toEqual(["run_5 running", "run_4 failed", "run_3 running", "run_2 running", "run_1 succeeded"]);
		expect(now.pages.at(-1)?.next_cursor).toBe("b");
	});

	it("drops runs that no longer match the filter", () => {
		const fresh = { data: [run(5), run(3)], next_cursor: "c" };
		const now = merge(old, fresh, [{ run_id: "run_1", status: "succeeded" }], "running");
		expect(list(now)).toEqual(["run_5 running", "run_3 running", "run_2 running"]);
	});

	it("distinguishes waiting runs from running ones", () => {
		const waits = { kind: "answer", reason: "waits for an answer", step_id: "ask", connection: null, until: null };
		expect(shownStatus({ ...run(1), waiting_for: waits })).toBe("waiting");
		expect(shownStatus(run(1))).toBe("running");
		const some: Pages = {
			pages: [
				{ data: [run(4)], next_cursor: "a" },
				{ data: [{ ...run(2), waiting_for: waits }, run(1)], next_cursor: "b" },
			],
			pageParams: [undefined, "a"],
		};
		const fresh = { data: [run(4)], next_cursor: "a" };
		expect(list(merge(some, fresh, [], "running"))).toEqual(["run_4 running", "run_1 running"]);
		const ended = merge(some, fresh, [{ run_id: "run_2", status: "failed" }], undefined);
		expect(ended.pages[1]?.data[0]).toMatchObject({ status: "failed", waiting_for: null });
	});

	it("replaces the list if the first page is complete", () => {
		expect(list(merge(old, { data: [run(3)], next_cursor: null }, [], undefined))).toEqual(["run_3 running"]);
	});
});

describe("queryOf", () => {
	it("supports relative and absolute times", () => {
		const now = Date.parse("2026-11-15T12:00:00Z");
		expect(queryOf({ since: "24h", status: "failed" }, now)).toMatchObject({
			status: "failed",
			started_after: "2026-11-14T12:00:00.000Z",
		});
		expect(queryOf({ since: "custom", after: "2026-11-01T00:00:00Z", before: "nonsense" }, now)).toMatchObject({
			started_after: "2026-11-01T00:00:00.000Z",
			started_before: undefined,
		});
		expect(queryOf({ status: "waiting" }, now)).toMatchObject({ status: "running", waiting: true });
		expect(queryOf({ status: "running" }, now)).toMatchObject({ status: "running", waiting: false });
		expect(queryOf({ status: "failed" }, now).waiting).toBeUndefined();
		expect(queryOf({ status: "odd", text: "  " }, now)).toMatchObject({ status: undefined, text: undefined });
	});
});
