import { expect, test } from "vitest";
import { type Condition, conditionsOf, filterOf, operatorName, operatorsOf } from "./filter";
import type { Column, ColumnType } from "./value";

const column = (name: string, type: ColumnType): Column => ({ id: name, name, type, required: false, indexed: false });
const columns = [
	column("city", "text"),
	column("amount", "number"),
	column("paid", "boolean"),
	column("since", "time"),
	column("extra", "json"),
];

test.each<[Condition, string]>([
	[{ column: "city", op: "=", text: "12" }, '{"column":"city","op":"=","value":"12"}'],
	[
		{ column: "amount", op: ">=", text: "12345678901234567890.5" },
		'{"column":"amount","op":">=","value":12345678901234567890.5}',
	],
	[{ column: "amount", op: "in", text: "1, 2" }, '{"column":"amount","op":"in","value":[1,2]}'],
	[{ column: "paid", op: "=", text: "true" }, '{"column":"paid","op":"=","value":true}'],
	[{ column: "extra", op: "is_null", text: "" }, '{"column":"extra","op":"is_null","value":true}'],
	[{ column: "extra", op: "is_not_null", text: "" }, '{"column":"extra","op":"is_null","value":false}'],
	[{ column: "amount", op: "=", text: "many" }, '{"column":"amount","op":"=","value":"many"}'],
])("%j is %s, and back", (condition, json) => {
	const filter = filterOf([condition, condition], columns) ?? "";
	expect(filter).toBe(`{"and":[${json},${json}]}`);
	expect(conditionsOf(filter, columns)).toEqual([condition, condition]);
});

test("no conditions are no filter", () => {
	expect(filterOf([], columns)).toBeUndefined();
});

test("a single condition is shown in the form", () => {
	expect(conditionsOf('{"column": "city", "op": "contains", "value": "ric"}', columns)).toEqual([
		{ column: "city", op: "contains", text: "ric" },
	]);
	expect(conditionsOf('{"column": "city", "op": "is_null"}', columns)).toEqual([
		{ column: "city", op: "is_null", text: "" },
	]);
});

test.each([
	'{"or": [{"column": "city", "op": "=", "value": "a"}]}',
	'{"and": [{"not": {"column": "city", "op": "=", "value": "a"}}]}',
	'{"column": "city", "op": "in", "value": ["a,b"]}',
	'{"column": "missing", "op": "=", "value": 1}',
	'{"column": "extra", "op": "=", "value": 1}',
	"not JSON",
])("%s needs the JSON editor", (filter) => {
	expect(conditionsOf(filter, columns)).toBeUndefined();
});

test("offers the operators of a type, in its words", () => {
	expect(operatorsOf("json")).toEqual(["is_null", "is_not_null"]);
	expect(operatorsOf("number")).not.toContain("contains");
	expect(operatorName("<", "time")).toBe("is before");
	expect(operatorName("<", "number")).toBe("is less than");
});
