import { expect, test } from "vitest";
import { readPayload } from "./payload";

test("accepts an object or nothing", () => {
	expect(readPayload('{"name": "Ada"}')).toEqual({ payload: { name: "Ada" } });
	expect(readPayload("  \n")).toEqual({ payload: {} });
});

test.each(["[1]", "null", '"text"', "3"])("rejects %s, which is not an object", (text) => {
	expect(readPayload(text)).toEqual({ problem: expect.stringContaining("must be an object") });
});

test("reports invalid JSON", () => {
	expect(readPayload("{name: Ada}").problem).toContain("This is not valid JSON");
});
