import { expect, test } from "vitest";
import { readPayload } from "./payload";

test("an object is a payload, and nothing is an empty one", () => {
	expect(readPayload('{"name": "Ada"}')).toEqual({ payload: { name: "Ada" } });
	expect(readPayload("  \n")).toEqual({ payload: {} });
});

test.each(["[1]", "null", '"text"', "3"])("%s is JSON but no object", (text) => {
	expect(readPayload(text)).toEqual({ problem: expect.stringContaining("must be an object") });
});

test("what is not JSON is told as such", () => {
	expect(readPayload("{name: Ada}").problem).toContain("This is not JSON");
});
