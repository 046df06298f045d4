import { expect, test } from "vitest";
import { formatBytes, formatNumber } from "./format";

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
});
