import { expect, test } from "vitest";
import { ApiError } from "@/api/error";
import { offsetOf, problemsOf } from "./problems";

test("problems have the positions from the server", () => {
	const error = new ApiError(422, "workflow_invalid", "The workflow has 1 problem.", [
		{ pointer: "/steps/0/id", message: "is not an id", line: 3, column: 12 },
	]);
	expect(problemsOf(error)).toEqual([{ pointer: "/steps/0/id", message: "is not an id", line: 3, column: 12 }]);
	expect(problemsOf(new ApiError(403, "plan_limit", "No more workflows."))).toEqual([]);
});

test.each([
	["ab\ncd", 2, 2, 4],
	["ab\r\ncd", 2, 1, 4],
	["😀b", 1, 2, 2],
	["ab", 9, 9, 2],
])("in %j line %i, column %i is at %i", (text, line, column, at) => {
	expect(offsetOf(text, line, column)).toBe(at);
});
