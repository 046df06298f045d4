import { expect, test } from "vitest";
import { nameProblem, readValue } from "./value";

test.each(["a", "_a1", "A".repeat(63), ""])("%j is a valid name", (name) => {
	expect(nameProblem(name)).toBeUndefined();
});

test.each(["1a", "a-b", "a b", "ä", "A".repeat(64)])("%j is not a valid name", (name) => {
	expect(nameProblem(name)).toBeDefined();
});

test("a value is any JSON", () => {
	expect(readValue("null")).toEqual({ value: null });
	expect(readValue(' {"a": [1]} ')).toEqual({ value: { a: [1] } });
});

test("explains that text needs quotes", () => {
	expect(readValue("eu-west")).toEqual({ problem: 'This is not valid JSON. Put text in quotes: "eu-west"' });
	expect(readValue('{"a": ')).toEqual({ problem: "This is not valid JSON." });
});
