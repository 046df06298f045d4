import { expect, test } from "vitest";
import { indent, isJson, items, list, members, object } from "./raw-json";

const digits = "123456789012345678901234567890.10";

test("takes an object apart without changing its values", () => {
	const text = ` {"n": ${digits}, "t": "a,\\"}]", "o": {"a": [1, {"b": 2}]}, "__proto__": null, "e": []} `;
	expect([...members(text)]).toEqual([
		["n", digits],
		["t", '"a,\\"}]"'],
		["o", '{"a": [1, {"b": 2}]}'],
		["__proto__", "null"],
		["e", "[]"],
	]);
});

test("takes a list apart", () => {
	expect(items(`[1, [2, 3], "a,b", {"c": [4]}]`)).toEqual(["1", "[2, 3]", '"a,b"', '{"c": [4]}']);
	expect(items("[]")).toEqual([]);
	expect(items("{ }")).toEqual([]);
});

test("puts values together", () => {
	expect(object([["a", digits]])).toBe(`{"a":${digits}}`);
	expect(list(["1", '"b"'])).toBe('[1,"b"]');
});

test.each([{}, [], { a: 1 }, [[], {}, [1, "x: {,"]], { a: { b: [1, { c: null }] }, d: true }, "text", 3])(
	"indents %j as JSON.stringify does",
	(value) => {
		expect(indent(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
	},
);

test("indents without changing digits", () => {
	expect(indent(`{"n":${digits}}`)).toBe(`{\n  "n": ${digits}\n}`);
});

test("handles very long strings", () => {
	const long = JSON.stringify("a\\".repeat(200_000));
	expect(members(`{"long":${long}}`).get("long")).toBe(long);
});

test("recognizes JSON", () => {
	expect(["1", '{"a":1}', "", "abc", "01"].map(isJson)).toEqual([true, true, false, false, false]);
});
