import { expect, test } from "vitest";
import { nextRefresh } from "./refresh-when-due";

const now = Date.parse("2026-11-15T10:00:00.000Z");
const pending = (next_at: string | null) => ({ status: "pending", next_at });

test("nothing is due if no delivery is pending", () => {
	expect(nextRefresh([], now)).toBeNull();
	expect(nextRefresh([{ status: "delivered", next_at: null }], now)).toBeNull();
});

test("refreshes shortly after the earliest attempt", () => {
	expect(nextRefresh([pending("2026-11-15T10:05:00.000Z"), pending("2026-11-15T10:00:05.000Z")], now)).toBe(5_500);
});

test("refreshes at least hourly and at most every second", () => {
	expect(nextRefresh([pending("2026-11-15T09:59:59.000Z")], now)).toBe(1_000);
	expect(nextRefresh([pending(null)], now)).toBe(1_000);
	expect(nextRefresh([pending("2026-11-16T10:00:00.000Z")], now)).toBe(3_600_000);
});
