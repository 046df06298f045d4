import { expect, it } from "vitest";
import { logText, matchLines } from "./log-text";

const line = (level: string, message: string) =>
	({ step_id: "a", at: "2026-11-15T09:00:00.000Z", level, message }) as Parameters<typeof logText>[0][number];
const lines = [line("info", "Order 42 shipped"), line("error", "Order 43 failed"), line("info", "done")];

it("finds the lines with every word, also in their level", () => {
	expect(matchLines(lines, "ORDER").length).toBe(2);
	expect(matchLines(lines, "order error").map(({ message }) => message)).toEqual(["Order 43 failed"]);
	expect(matchLines(lines, "nothing")).toEqual([]);
	expect(matchLines(lines, "  ")).toBe(lines);
});

it("writes one line each", () => {
	expect(logText(lines.slice(1))).toBe(
		"2026-11-15T09:00:00.000Z error Order 43 failed\n2026-11-15T09:00:00.000Z info  done\n",
	);
});
