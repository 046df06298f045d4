import { describe, expect, test } from "vitest";
import { parseCron } from "./cron";
import { nextTimes } from "./times";
import { cronOf, describeCron, simpleOf } from "./words";

describe("cron in words", () => {
	test.each([
		["0 3 * * *", "Every day at 03:00"],
		["*/15 * * * *", "Every 15 minutes"],
		["* * * * *", "Every minute"],
		["@hourly", "Every hour"],
		["5 * * * *", "Every hour at 5 past"],
		["*/15 8-18 * * MON-FRI", "Every 15 minutes in the hours 8 to 18 from Monday to Friday"],
		["30 9 * * 0,6", "At 09:30 at the weekend"],
		["0 9 1,15 * *", "At 09:00 on the 1st and 15th of the month"],
		["0 9,17 * * 3", "At 09:00 and 17:00 on Wednesday"],
		["0 0 1 jan *", "At 00:00 on the 1st of the month in January"],
		["0 12 13 * fri", "At 12:00 on the 13th of the month and on Friday"],
		["@every 15m", "Every 15m"],
		["0 0 * * 7", "At 00:00 on Sunday"],
	])("%s: %s", (text, words) => {
		expect(describeCron(text)).toBe(words);
	});

	test.each(["", "* * * *", "60 * * * *", "* 24 * * *", "a b c d e", "5-1 * * * *", "*/0 * * * *"])(
		"%j is none",
		(text) => {
			expect(describeCron(text)).toBeUndefined();
		},
	);
});

test("simple schedules round-trip through cron", () => {
	for (const text of ["5 * * * *", "30 9 * * *", "0 8 * * 1-5", "15 6 * * 2", "0 0 31 * *"]) {
		const simple = simpleOf(text);
		expect(simple && cronOf(simple)).toBe(text);
	}
	expect(simpleOf("*/15 * * * *")).toBeUndefined();
	expect(simpleOf("0 9 1 1 *")).toBeUndefined();
});

describe("the next times", () => {
	const next = (text: string, zone: string, after: string, count = 3) => {
		const cron = parseCron(text);
		if (!cron) throw new Error(`${text} is no cron`);
		return nextTimes(cron, zone, Date.parse(after), count).map((at) => new Date(at).toISOString().slice(0, 16));
	};

	test("use the local time of the zone", () => {
		expect(next("0 3 * * *", "Europe/Paris", "2026-11-15T12:00:00Z", 2)).toEqual([
			"2026-11-16T02:00",
			"2026-11-17T02:00",
		]);
		expect(next("*/20 * * * *", "UTC", "2026-11-15T23:30:00Z")).toEqual([
			"2026-11-15T23:40",
			"2026-11-16T00:00",
			"2026-11-16T00:20",
		]);
	});

	test("come once when clocks change", () => {
		expect(next("30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z", 2)).toEqual([
			"2026-03-29T01:00",
			"2026-03-30T00:30",
		]);
		expect(next("30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z", 2)).toEqual([
			"2026-10-25T00:30",
			"2026-10-26T01:30",
		]);
	});

	test("come in both hours for an hourly schedule when clocks go back", () => {
		expect(next("30 * * * *", "Europe/Paris", "2026-10-25T00:00:00Z", 3)).toEqual([
			"2026-10-25T00:30",
			"2026-10-25T01:30",
			"2026-10-25T02:30",
		]);
	});

	test("can be years away, or never", () => {
		expect(next("0 0 29 2 *", "UTC", "2026-11-15T00:00:00Z", 1)).toEqual(["2028-02-29T00:00"]);
		expect(next("0 0 31 2 *", "UTC", "2026-11-15T00:00:00Z", 1)).toEqual([]);
		expect(next("0 0 * * *", "Moon/Base", "2026-11-15T00:00:00Z", 1)).toEqual([]);
	});
});
