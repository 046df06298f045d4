import { expect, test } from "vitest";
import { bars, percent, type RecentRun, summary, triggerLabels } from "./activity";

const run = (id: string, status: RecentRun["status"], duration_ms: number): RecentRun => ({
	id,
	status,
	duration_ms,
	started_at: "2026-11-15T10:00:00.000Z",
	finished_at: null,
	draft: false,
});

test("a sparkline starts with the oldest run", () => {
	const recent = [run("new", "failed", 50), run("old", "succeeded", 200)];
	expect(bars(recent)).toEqual([
		{ id: "old", status: "succeeded", size: 1 },
		{ id: "new", status: "failed", size: 0.25 },
	]);
});

test("runs that took no time have no size", () => {
	expect(bars([run("a", "succeeded", 0)])).toEqual([{ id: "a", status: "succeeded", size: 0 }]);
});

test("the summary counts each status", () => {
	expect(summary([])).toBe("No runs yet");
	expect(summary([run("a", "failed", 1)])).toBe("Last run: 1 failed");
	expect(summary([run("a", "running", 1), run("b", "succeeded", 1), run("c", "succeeded", 1)])).toBe(
		"Last 3 runs: 2 succeeded, 1 running",
	);
});

test.each([
	[1, "100 %"],
	[0.999, "99 %"],
	[0.5, "50 %"],
	[0.001, "1 %"],
	[0, "0 %"],
])("a rate of %f is %s", (rate, text) => expect(percent(rate)).toBe(text));

test("triggers of the same type share a label", () => {
	expect(triggerLabels([{ type: "schedule" }, { type: "webhook" }, { type: "schedule" }, { type: "manual" }])).toEqual([
		{ type: "schedule", text: "2 schedules" },
		{ type: "webhook", text: "Webhook" },
		{ type: "manual", text: "Manual" },
	]);
});
