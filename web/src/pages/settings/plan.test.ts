import { expect, test } from "vitest";
import { fillDays, planName } from "./plan";

test("capitalizes the name of a plan", () => {
	expect(planName("enterprise")).toBe("Enterprise");
});

test("fills in every day, also across months", () => {
	const counted = {
		date: "2026-02-28",
		requests: 3,
		runs_started: 2,
		runs_succeeded: 1,
		runs_failed: 1,
		runs_cancelled: 0,
	};
	const days = fillDays([counted], 4, new Date("2026-03-01T23:59:59Z"));
	expect(days.map((day) => day.date)).toEqual(["2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"]);
	expect(days[2]).toEqual(counted);
	expect(days[3]?.requests).toBe(0);
});
