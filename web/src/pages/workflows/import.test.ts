import { expect, test } from "vitest";
import { ApiError } from "@/api/error";
import { type Import, offsetOf, problemsOf, readImport } from "./import";

const yaml = "# greets\nname: Greet\nsteps:\n  - id: hello\n    uses: data.set\n";

test("YAML is sent as it was written", () => {
	expect(readImport(yaml)).toMatchObject({ name: "Greet", body: { source: yaml } });
});

test("the name is that of the text, else of the file", () => {
	expect(readImport("steps: []", "close-the-books.yaml")).toMatchObject({ name: "close-the-books" });
	expect(readImport("steps: []")).toMatchObject({ name: "Imported workflow" });
	expect(readImport('{"name": "  ", "steps": []}', "a.b.json")).toMatchObject({ name: "a.b" });
});

test("JSON of the API is imported without what belongs to the original", () => {
	const text = '{\n\t"id": "wf_1",\n\t"state": "active",\n\t"name": "Greet",\n\t"steps": []\n}';
	expect(readImport(text)).toMatchObject({ name: "Greet", body: { name: "Greet", steps: [] } });
	expect((readImport(text) as Import).body).not.toHaveProperty("id");
});

test("a text that cannot be read is told with its place, without asking the server", () => {
	expect(readImport("name: x\nsteps: [")).toEqual({ problems: [expect.objectContaining({ line: 2 })] });
	expect(readImport('{"name": ')).toEqual({ problems: [expect.objectContaining({ line: 1 })] });
	expect(readImport("- a list")).toEqual({ problems: [expect.objectContaining({ line: 1, column: 1 })] });
});

test("errors of the server without a place get that of their pointer", () => {
	const { parsed } = readImport('{\n  "steps": [\n    {"id": "A B"}\n  ]\n}') as Import;
	const error = new ApiError(422, "workflow_invalid", "The definition is not valid.", [
		{ pointer: "/steps/0/id", message: "is not an id" },
		{ pointer: "/name", message: "is missing", line: 7, column: 3 },
	]);
	expect(problemsOf(error, parsed)).toEqual([
		{ pointer: "/steps/0/id", message: "is not an id", line: 3, column: 12 },
		{ pointer: "/name", message: "is missing", line: 7, column: 3 },
	]);
	expect(problemsOf(new ApiError(403, "plan_limit", "No more workflows."), parsed)).toEqual([
		{ message: "No more workflows." },
	]);
});

test.each([
	["ab\ncd", 2, 2, 4],
	["ab\r\ncd", 2, 1, 4],
	["😀b", 1, 2, 2],
	["ab", 9, 9, 2],
])("in %j line %i, column %i is at %i", (text, line, column, at) => {
	expect(offsetOf(text, line, column)).toBe(at);
});
