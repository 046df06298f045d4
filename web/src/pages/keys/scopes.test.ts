import { expect, test } from "vitest";
import { example, expiry } from "./scopes";

const now = Date.parse("2026-11-15T10:00:00.000Z");

test("a key expires after days, at the end of a date, or never", () => {
	expect(expiry("30", "", now)).toBe("2026-12-15T10:00:00.000Z");
	expect(expiry("never", "2027-01-31", now)).toBeNull();
	expect(expiry("date", "2027-01-31", now)).toBe(new Date(2027, 1, 1).toISOString());
});

test("the example is a call that the key allows", () => {
	expect(example("https://a.example", "smk_1", ["read", "write"])).toBe(
		"curl -sS https://a.example/v1/workflows \\\n  -H 'Authorization: Bearer smk_1'",
	);
	expect(example("https://a.example", "smk_1", ["admin"])).not.toContain("-d");
	expect(example("https://a.example", "smk_1", ["write"])).toContain(`-d '{"name": `);
	expect(example("https://a.example", "smk_1", ["execute"])).toContain("/runs");
});
