import { expect, test } from "vitest";
import { fillDays, formatBytes, formatNumber, planName } from "./plan";

test("formats sizes and numbers", () => {
	expect([0, 1023, 1024, 1536, 1 << 20, 5 * 2 ** 30].map(formatBytes)).toEqual([
		"0 bytes",
		"1023 bytes",
		"1 KiB",
		"1.5 KiB",
		"1 MiB",
		"5 GiB",
	]);
	expect(formatNumber(1234567)).toBe("1,234,567");
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
