import { expect, test } from "vitest";
import { type Command, rank, score } from "./commands";
import { readSearch, writeSearch } from "./filters";
import { inside } from "./gate";
import { pressed } from "./keys";

test.each([
	["/runs?status=failed", true],
	["/", true],
	["//example.com", false],
	["/\\example.com", false],
	["https://example.com", false],
	["javascript:alert(1)", false],
	["/sign-in?next=/sign-in", false],
	["", false],
	[undefined, false],
])("%s is inside: %s", (next, expected) => {
	expect(inside(next)).toBe(expected);
});

test("filters in an address are plain texts", () => {
	expect(readSearch("?status=failed&text=a+b%26c&n=1")).toEqual({ status: "failed", text: "a b&c", n: "1" });
	expect(writeSearch({ status: "failed", text: "", none: undefined, gone: null })).toBe("?status=failed");
	expect(writeSearch({})).toBe("");
	const text = "ä&=?#/ \"'";
	expect(readSearch(writeSearch({ text }))).toEqual({ text });
});

const key = (key: string, more: Partial<KeyboardEvent> = {}) =>
	pressed({ key, metaKey: false, ctrlKey: false, altKey: false, shiftKey: false, ...more });

test("keys are named as shortcuts are written", () => {
	expect(key("k", { ctrlKey: true })).toBe("Mod+K");
	expect(key("?", { shiftKey: true })).toBe("?");
	expect(key("g")).toBe("G");
	expect(key("Z", { ctrlKey: true, shiftKey: true })).toBe("Mod+Shift+Z");
	expect(key("Enter", { ctrlKey: true })).toBe("Mod+Enter");
	expect(key("ArrowUp", { altKey: true })).toBe("Alt+ArrowUp");
});

const command = (group: Command["group"], name: string): Command => ({
	id: `${group}${name}`,
	group,
	name,
	run: () => undefined,
});

test("the palette shows what fits best first", () => {
	const list = [
		command("Run", "Run Order intake"),
		command("Workflows", "Reorder stock"),
		command("Workflows", "Daily order report"),
		command("Workflows", "Order intake"),
		command("Go to", "Workflows"),
	];
	expect(rank(list, "order").map((one) => one.name)).toEqual([
		"Order intake",
		"Daily order report",
		"Reorder stock",
		"Run Order intake",
	]);
	expect(rank(list, "").map((one) => one.name)).not.toContain("Run Order intake");
	expect(rank(list, "nothing")).toEqual([]);
	expect(score("Secrets & variables", "var")).toBe(1);
	expect(score("Daily order report", "report daily")).toBe(3);
});
