import { expect, test } from "vitest";
import { nameProblem, readValue } from "./value";

test.each(["a", "_a1", "A".repeat(63), ""])("%j gives no cause for complaint", (name) => {
	expect(nameProblem(name)).toBeUndefined();
});

test.each(["1a", "a-b", "a b", "ä", "A".repeat(64)])("%j is no name", (name) => {
	expect(nameProblem(name)).toBeDefined();
});

test("a value is any JSON", () => {
	expect(readValue("null")).toEqual({ value: null });
	expect(readValue(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
});

test("a text without quotes is told how to have them", () => {
	expect(readValue("eu-west")).toEqual({ problem: 'This is not JSON. A text needs quotes: "eu-west"' });
	expect(readValue('{"a": ')).toEqual({ problem: "This is not JSON." });
});
