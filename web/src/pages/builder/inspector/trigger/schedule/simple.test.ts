import { describe, expect, test } from "vitest";
import { cronOf, simpleOf } from "./simple";
import { describeCron } from "./words";

describe("cron in words", () => {
	test.each([
		["0 3 * * *", "At 03:00"],
		["*/15 * * * *", "Every 15 minutes"],
		["@daily", "At 00:00"],
		["@midnight", "At 00:00"],
		["0 9 * * 0", "At 09:00, only on Sunday"],
		["30 9 1,15 * *", "At 09:30, on day 1 and 15 of the month"],
		["0 9 * jan mon-fri", "At 09:00, Monday through Friday, only in January"],
		["@every 15m", "Every 15m"],
	])("%s: %s", (text, words) => {
		expect(describeCron(text)).toBe(words);
	});

	test.each(["", "* * * *", "60 * * * *", "a b c d e"])("%j is none", (text) => {
		expect(describeCron(text)).toBeUndefined();
	});
});

describe("simple schedules", () => {
	test.each(["5 * * * *", "30 9 * * *", "0 8 * * 1-5", "15 6 * * 2", "0 0 31 * *"])("%s round-trips", (text) => {
		const simple = simpleOf(text);
		expect(simple && cronOf(simple)).toBe(text);
	});

	test.each([
		["0 9 * * 7", { repeat: "week", weekday: 0, hour: 9 }],
		["05  09 * * MON-FRI", { repeat: "weekdays", minute: 5, hour: 9 }],
		["0 0 01 * *", { repeat: "month", day: 1 }],
	])("%s is one", (text, want) => {
		expect(simpleOf(text)).toMatchObject(want);
	});

	test.each([
		"*/15 * * * *",
		"0 9 1 1 *",
		"60 9 * * *",
		"0 24 * * *",
		"0 9 32 * *",
		"0 9 1 * 1",
		"0 * * * 1",
		"@daily",
		"",
	])("%s is none", (text) => {
		expect(simpleOf(text)).toBeUndefined();
	});
});
