import { expect, test } from "vitest";
import { givenValues, type Input, initialValues, listingInput } from "./values";

const input = (name: string, type: string, more: Partial<Input> = {}): Input => ({
	name,
	type,
	title: name,
	help: null,
	required: true,
	default: null,
	example: null,
	pattern: null,
	options: null,
	integration: null,
	services: null,
	lists: null,
	...more,
});

const inputs = [
	input("channel", "account"),
	input("limit", "integer", { default: 3, required: false }),
	input("share", "number"),
	input("zone", "string", { default: "UTC", required: false }),
	input("note", "string", { default: "", required: false }),
];

test("starts with the defaults", () => {
	expect(initialValues(inputs)).toEqual({ limit: 3, zone: "UTC" });
});

test("sends numbers as numbers, and nothing for an empty field", () => {
	expect(givenValues(inputs, { channel: 7, limit: "12", share: " 0.5", zone: "CET", note: "" })).toEqual({
		channel: 7,
		limit: 12,
		share: 0.5,
		zone: "CET",
	});
	expect(givenValues(inputs, { channel: "", limit: "many", share: "" })).toEqual({ limit: "many", zone: "" });
});

test("a list depends on the values of other inputs", () => {
	const sheet = input("sheet", "account", {
		lists: {
			operation: "google_sheets.append_row",
			trigger: null,
			input: "sheet",
			connection: "google",
			with: { spreadsheet: "file", header: "header" },
		},
	});
	expect(listingInput(sheet, { file: "1Bx", header: "" })).toEqual({ spreadsheet: "1Bx" });
	expect(listingInput(input("a", "string"), {})).toEqual({});
});
