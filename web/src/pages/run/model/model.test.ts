import { describe, expect, it } from "vitest";
import { waitingText } from "@/shared/run/words";
import type { Step } from "@/shared/workflow/model/types";
import { startAsCurl } from "./curl";
import { handledFailures } from "./outcome";
import { ancestors, parsePath, parseRound } from "./path";
import { RunRecord, type StepHead } from "./record";
import { adjacentRound, roundNumbered, roundsOf, tally } from "./rounds";
import { move, rowsOf } from "./rows";
import { shownExecutions } from "./shown-executions";
import { segmentsOf, tickLabel, ticks } from "./timeline";

const at = (second: number) => new Date(Date.UTC(2026, 10, 15, 9, 0, second)).toISOString();

function head(path: string, status: StepHead["status"], more: Partial<StepHead> = {}): StepHead {
	const open = status === "running" || status === "waiting";
	return {
		step_id: path,
		name: path,
		type: "log.write",
		status,
		attempt: 1,
		started_at: at(0),
		finished_at: open ? null : at(1),
		duration_ms: 1000,
		error: null,
		reason: null,
		attempts: [],
		pinned: false,
		...more,
	};
}

function record(...steps: StepHead[]): RunRecord {
	const made = new RunRecord();
	for (const data of steps) made.apply({ type: "step", id: "", data });
	made.stop();
	return made;
}

const reserve: Step = { id: "reserve", uses: "http.request" };
const note: Step = { id: "note", uses: "log.write", on_error: "continue" };
const lines: Step = { id: "lines", foreach: "x", steps: [reserve, note] };
const steps: Step[] = [{ id: "first", uses: "log.write" }, lines, { id: "last", uses: "log.write" }];

describe("paths", () => {
	it("are parsed into block, round and id", () => {
		expect(parsePath("first")).toEqual({ block: null, round: null, id: "first" });
		expect(parsePath("lines[3].parts[12].pick")).toEqual({ block: "lines[3].parts", round: 12, id: "pick" });
		expect(parseRound("lines[3].parts[12]")).toEqual({ block: "lines[3].parts", index: 12 });
		expect(parseRound("lines[3].parts")).toBeUndefined();
		expect(ancestors("lines[3].parts[12].pick")).toEqual(["lines", "lines[3]", "lines[3].parts", "lines[3].parts[12]"]);
		expect(ancestors("first")).toEqual([]);
	});
});

describe("handled failures", () => {
	const handling: Step[] = [
		{ id: "outer", foreach: "x", steps: [{ id: "inner", foreach: "y", on_error: "continue", steps: [note, reserve] }] },
		note,
	];
	const failed = record(
		head("note", "failed"),
		head("outer[0].inner", "failed"),
		head("outer[0].inner[1].note", "failed"),
		head("outer[0].inner[1].reserve", "failed"),
		head("outer[0].inner[2].note", "succeeded"),
	);

	it("are counted for the run and every block and round around them", () => {
		expect(Object.fromEntries(handledFailures(failed, handling))).toEqual({
			"": 3,
			outer: 2,
			"outer[0]": 2,
			"outer[0].inner": 1,
			"outer[0].inner[1]": 1,
		});
	});

	it("are none without on_error", () => {
		expect(handledFailures(record(head("first", "failed")), steps).size).toBe(0);
	});

	it("bring their rounds to the front of those that succeeded", () => {
		const done = record(
			head("lines", "succeeded"),
			...[0, 1, 2].flatMap((at) => [
				head(`lines[${at}].reserve`, "succeeded"),
				head(`lines[${at}].note`, at === 2 ? "failed" : "succeeded"),
			]),
		);
		expect(roundsOf(done, "lines", lines).list.map((round) => round.index)).toEqual([2, 0, 1]);
	});
});

describe("a round by its number", () => {
	const rounds = roundsOf(
		record(head("lines", "running"), head("lines[0].reserve", "succeeded"), head("lines[7].reserve", "failed")),
		"lines",
		lines,
	);

	it("is that of the same step, counted from 1", () => {
		expect(roundNumbered(rounds, "lines", "lines[0].reserve", 8)).toBe("lines[7].reserve");
		expect(roundNumbered(rounds, "lines", "lines[0]", 8)).toBe("lines[7]");
		expect(roundNumbered(rounds, "lines", "lines", 1)).toBe("lines[0]");
	});

	it.each([0, 2, 9, Number.NaN, 1.5])("does not exist if it has not started: %s", (number) => {
		expect(roundNumbered(rounds, "lines", "lines[0]", number)).toBeUndefined();
	});
});

describe("rounds", () => {
	const loop = record(
		head("lines", "running", { finished_at: null }),
		head("lines[0].reserve", "succeeded"),
		head("lines[0].note", "failed"),
		head("lines[1].reserve", "failed"),
		head("lines[2].reserve", "waiting"),
		head("lines[3].reserve", "succeeded"),
		head("lines[4].reserve", "skipped"),
		head("lines[4].note", "skipped"),
	);
	const rounds = roundsOf(loop, "lines", lines);

	it("are ordered by urgency", () => {
		expect(rounds.list.map((round) => `${round.index} ${round.status}`)).toEqual([
			"1 failed",
			"3 running",
			"2 waiting",
			"0 succeeded",
			"4 skipped",
		]);
		expect(tally(rounds, 40)).toBe("2/40 · 1 failed");
		expect(tally(rounds, undefined)).toBe("5 rounds · 1 failed");
	});

	it("are paged through in display order, keeping the step", () => {
		expect(adjacentRound(rounds, "lines[1].reserve", 1)).toBe("lines[3].reserve");
		expect(adjacentRound(rounds, "lines[1]", -1)).toBeUndefined();
		expect(adjacentRound(rounds, "first", 1)).toBe("lines[1]");
	});

	it("show the selected round, or the most urgent one", () => {
		expect(shownExecutions(loop, steps, "").get("reserve")).toBe("lines[1].reserve");
		expect(shownExecutions(loop, steps, "lines[2].note").get("reserve")).toBe("lines[2].reserve");
	});
});

describe("rows", () => {
	const run = record(head("first", "succeeded"), head("lines", "running"), head("lines[0].reserve", "running"));

	it("include steps that have not started, and expanded content", () => {
		expect(rowsOf(run, steps, () => false).map((row) => row.path)).toEqual(["first", "lines", "last"]);
		const rows = rowsOf(run, steps, () => true);
		expect(rows.map((row) => `${row.depth} ${row.path}`)).toEqual([
			"0 first",
			"0 lines",
			"1 lines[0]",
			"2 lines[0].reserve",
			"2 lines[0].note",
			"0 last",
		]);
	});

	it("support keyboard navigation", () => {
		const closed = rowsOf(run, steps, () => false);
		const open = rowsOf(run, steps, () => true);
		expect(
			move(
				closed,
				closed.findIndex((row) => row.path === ""),
				"ArrowDown",
			),
		).toEqual({ to: "first" });
		expect(
			move(
				closed,
				closed.findIndex((row) => row.path === "lines"),
				"ArrowRight",
			),
		).toEqual({ open: "lines" });
		expect(
			move(
				open,
				open.findIndex((row) => row.path === "lines"),
				"ArrowRight",
			),
		).toEqual({ to: "lines[0]" });
		expect(
			move(
				open,
				open.findIndex((row) => row.path === "lines[0].note"),
				"ArrowLeft",
			),
		).toEqual({ to: "lines[0]" });
		expect(
			move(
				open,
				open.findIndex((row) => row.path === "lines"),
				"ArrowLeft",
			),
		).toEqual({ close: "lines" });
		expect(
			move(
				open,
				open.findIndex((row) => row.path === "first"),
				"End",
			),
		).toEqual({ to: "last" });
	});

	it("are fast with ten thousand rounds", () => {
		const many = record(
			head("lines", "running"),
			...Array.from({ length: 10_000 }, (_, i) => head(`lines[${i}].reserve`, i % 1000 === 7 ? "failed" : "succeeded")),
		);
		const began = performance.now();
		const rows = rowsOf(many, steps, (path) => path === "lines");
		expect(rows).toHaveLength(10_003);
		expect(rows[2]?.path).toBe("lines[7]");
		expect(performance.now() - began).toBeLessThan(1_000);
	});
});

describe("timeline", () => {
	it("has a segment for each attempt and each pause", () => {
		const tried = head("a", "running", {
			attempts: [
				{ attempt: 1, status: "failed", started_at: at(0), finished_at: at(1), duration_ms: 1, error: null },
				{ attempt: 2, status: "running", started_at: at(3), finished_at: null, duration_ms: 1, error: null },
			],
		});
		const got = segmentsOf(tried, Date.parse(at(5))).map((s) => [s.status, s.wait, (s.to - s.from) / 1000]);
		expect(got).toEqual([
			["failed", false, 1],
			["waiting", true, 2],
			["running", false, 2],
		]);
	});

	it("has round ticks", () => {
		expect(ticks(4_700, 5)).toEqual([0, 1000, 2000, 3000, 4000]);
		expect(ticks(3 * 60_000, 6)).toEqual([0, 30_000, 60_000, 90_000, 120_000, 150_000, 180_000]);
		expect(ticks(0, 5)).toEqual([0]);
		expect([0, 120_000, 90_000, 10_000].map(tickLabel)).toEqual(["0", "2 min", "1 min 30 s", "10 s"]);
	});
});

describe("waitingText", () => {
	it("starts with the state", () => {
		expect(waitingText("waits for somebody to approve or reject")).toBe("Waiting for somebody to approve or reject");
		expect(waitingText("attempt 1 of 5 failed")).toBe("Waiting: attempt 1 of 5 failed");
		expect(waitingText("waiting for run_1 to finish")).toBe("Waiting for run_1 to finish");
		expect(waitingText("queued: the concurrency limit is reached")).toBe("Queued: the concurrency limit is reached");
	});
});

describe("curl", () => {
	it("quotes any payload", () => {
		const again = { trigger: null, body: { payload: { name: "it's" } } };
		expect(startAsCurl("https://x.example", "wf_1", again)).toContain(`-d '{"payload":{"name":"it'\\''s"}}'`);
	});

	it("fires the trigger of a call again", () => {
		const again = { trigger: "hook", body: { payload: {}, headers: { "x-a": "1" } } };
		const text = startAsCurl("https://x.example", "wf_1", again);
		expect(text).toContain("'https://x.example/v1/workflows/wf_1/triggers/hook/test'");
		expect(text).toContain(`-d '{"payload":{},"headers":{"x-a":"1"}}'`);
	});
});
