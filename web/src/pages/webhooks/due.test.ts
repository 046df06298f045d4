import { expect, test } from "vitest";
import { due } from "./due";

const now = Date.parse("2026-11-15T10:00:00.000Z");
const pending = (next_at: string | null) => ({ status: "pending", next_at });

test("nothing is due when everything has ended", () => {
	expect(due([], now)).toBeNull();
	expect(due([{ status: "delivered", next_at: null }], now)).toBeNull();
});

test("the earliest attempt counts, with a moment for it to be made", () => {
	expect(due([pending("2026-11-15T10:05:00.000Z"), pending("2026-11-15T10:00:05.000Z")], now)).toBe(5_500);
});

test("what is under way is looked at once a second, what is far away once an hour", () => {
	expect(due([pending("2026-11-15T09:59:59.000Z")], now)).toBe(1_000);
	expect(due([pending(null)], now)).toBe(1_000);
	expect(due([pending("2026-11-16T10:00:00.000Z")], now)).toBe(3_600_000);
});
