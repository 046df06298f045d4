import { describe, expect, test } from "vitest";
import type { Listed } from "./field";
import {
	blockedBy,
	choiceOf,
	dependencies,
	inputPath,
	type Member,
	matching,
	memberSchema,
	named,
	typed,
} from "./model";
import type { JsonSchema } from "./schema";

const listed: Listed = {
	operation: "list_columns",
	dependsOn: ["spreadsheet", "sheet", "language"],
	needs: ["spreadsheet", "sheet"],
	searchable: false,
};
const schema: JsonSchema = { properties: { spreadsheet: { title: "Spreadsheet" }, sheet: {} } };

test("the path of an input has no positions in lists", () => {
	expect(inputPath("/steps/0/with/channel", "/steps/0/with")).toBe("channel");
	expect(inputPath("/steps/0/with/rows/3/tags/0", "/steps/0/with")).toBe("rows/tags");
});

test("what is listed depends on inputs that have a value", () => {
	expect(dependencies(listed, { spreadsheet: "s", sheet: 0, language: "", other: 1 })).toEqual({
		spreadsheet: "s",
		sheet: 0,
	});
});

test.each<[string, Record<string, string | number>, string | undefined]>([
	["the first input that is missing", {}, "Choose “Spreadsheet” first."],
	["the next one, by its name if it has no title", { spreadsheet: "s" }, "Choose “Sheet” first."],
	["nothing, without an optional input", { spreadsheet: "s", sheet: 0 }, undefined],
	[
		"an expression",
		{ spreadsheet: "a ${{ vars.a }}", sheet: 0 },
		"Spreadsheet is an expression, so the list is known only when the step runs.",
	],
	[
		"an optional expression",
		{ spreadsheet: "s", sheet: 0, language: "${{ vars.a }}" },
		"Language is an expression, so the list is known only when the step runs.",
	],
])("a list has to wait for %s", (_, input, want) => {
	expect(blockedBy(listed, input, schema)).toBe(want);
});

describe("what is typed", () => {
	const choices = [
		{ value: "C1", label: "#general" },
		{ value: "C2", label: "#random" },
		{ value: 7, label: "#general-7" },
	];

	test("is a number only if it looks like one and the field takes one", () => {
		expect([typed("12", true), typed("-1.5", true), typed("12", false), typed("1e", true), typed("", true)]).toEqual([
			12,
			-1.5,
			"12",
			"1e",
			undefined,
		]);
	});

	test("finds values and labels", () => {
		expect(matching(choices, "GENERAL").map(({ value }) => value)).toEqual(["C1", 7]);
		expect(matching(choices, "c2").map(({ value }) => value)).toEqual(["C2"]);
		expect(matching(choices, " ")).toEqual(choices);
	});

	test("stands for the only value with that label", () => {
		expect(named(choices, "#Random ")?.value).toBe("C2");
		expect(named(choices, "#gen")).toBeUndefined();
		expect(named([...choices, { value: "C3", label: "#random" }], "#random")).toBeUndefined();
		expect(named([...choices, { value: "#random", label: "Other" }], "#random")).toBeUndefined();
	});

	test("is the value of a choice, whatever its type", () => {
		expect(choiceOf(choices, 7)?.label).toBe("#general-7");
		expect(choiceOf(choices, "7")?.label).toBe("#general-7");
		expect(choiceOf(choices, undefined)).toBeUndefined();
	});
});

test("members become the fields of a form", () => {
	const member = (name: string, type: string, more: Partial<Member> = {}): Member => ({
		name,
		title: name.toUpperCase(),
		type,
		required: false,
		options: null,
		...more,
	});
	const open = [{ value: "Open", label: "Open" }];
	const members = [
		member("name", "string", { required: true }),
		member("status", "string", { options: open }),
		member("done", "boolean"),
		member("sum", "number"),
		member("odd", "number"),
		member("cell", "any"),
		member("tags", "list", { options: open }),
		member("extra", "object"),
	];
	expect(memberSchema(members, { odd: "text", cell: 5 })).toEqual({
		type: "object",
		required: ["name"],
		properties: {
			name: { title: "NAME", type: "string" },
			status: { title: "STATUS", "x-choices": open },
			done: {
				title: "DONE",
				type: "boolean",
				"x-choices": [
					{ value: true, label: "Yes" },
					{ value: false, label: "No" },
				],
			},
			sum: { title: "SUM", type: "number" },
			odd: { title: "ODD", type: "string" },
			cell: { title: "CELL" },
			tags: { title: "TAGS", type: "array", items: { "x-choices": open } },
			extra: { title: "EXTRA", type: "object" },
		},
	});
});
