import { expect, test } from "vitest";
import { type Column, type ColumnType, editText, needsDialog, plainText, readCell, shownText } from "./value";

const column = (type: ColumnType, required = false): Column => ({
	id: "c1",
	name: "a",
	type,
	required,
	indexed: false,
});
const digits = "12345678901234567890.123456789";

test.each<[ColumnType, string, string]>([
	["text", '"a\\"b\\nc"', 'a"b\nc'],
	["text", '""', ""],
	["text", "null", ""],
	["number", digits, digits],
	["boolean", "false", "false"],
	["time", '"2026-03-01T12:00:00.000000Z"', "2026-03-01T12:00:00Z"],
	["time", '"2026-03-01T12:00:00.120000Z"', "2026-03-01T12:00:00.12Z"],
	["json", '"quoted"', '"quoted"'],
])("a %s %s reads %j", (type, raw, text) => {
	expect(plainText(raw, type)).toBe(text);
});

test.each<[ColumnType, string, string]>([
	["text", " 12 ", '" 12 "'],
	["number", ` ${digits} `, digits],
	["number", "1e400", "1e400"],
	["number", "twelve", '"twelve"'],
	["number", "012", '"012"'],
	["boolean", "true", "true"],
	["boolean", "yes", '"yes"'],
	["time", "2026-03-01T12:00:00Z", '"2026-03-01T12:00:00Z"'],
	["json", ` {"n": ${digits}} `, `{"n": ${digits}}`],
	["file", " file_1 ", '{"$file":"file_1"}'],
	["file", "", "null"],
	["text", "", "null"],
	["json", " ", "null"],
])("as a %s, %j is sent as %s", (type, text, raw) => {
	expect(readCell(text, column(type))).toEqual({ raw });
});

test("a file shows its name and size, and is edited by its id", () => {
	const raw = '{"$file":"file_1","name":"a.pdf","type":"application/pdf","size":2048,"sha256":"00"}';
	expect(shownText(raw, "file")).toBe("a.pdf (2 KiB)");
	expect(editText(raw, "file")).toBe("file_1");
	expect(needsDialog(raw, "file")).toBe(false);
	expect(shownText("null", "file")).toBe("");
});

test("an emptied required text is an empty text", () => {
	expect(readCell("", column("text", true))).toEqual({ raw: '""' });
	expect(readCell("", column("number", true))).toEqual({ raw: "null" });
});

test("explains that text in JSON needs quotes", () => {
	expect(readCell("abc", column("json"))).toEqual({ problem: 'This is not valid JSON. Put text in quotes: "abc"' });
});

test("clips long values, and edits them in a dialog", () => {
	const long = JSON.stringify("x".repeat(5_000));
	expect(shownText(long, "text")).toHaveLength(301);
	expect(needsDialog(long, "text")).toBe(true);
	expect(needsDialog('"a\\nb"', "text")).toBe(true);
	expect(needsDialog('"short"', "text")).toBe(false);
	expect(needsDialog("1", "json")).toBe(true);
	expect(editText('{"a":[1]}', "json")).toBe('{\n  "a": [\n    1\n  ]\n}');
});
