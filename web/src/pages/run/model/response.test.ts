import { describe, expect, it } from "vitest";
import { hintFor } from "./hints";
import { responseOf } from "./response";

describe("the response of a failed request", () => {
	it("shows the beginning of its body", () => {
		expect(responseOf({ status: 500, headers: {}, body: { reason: "sold out" } })).toEqual({
			status: 500,
			beginning: '{"reason":"sold out"}',
		});
		expect(responseOf({ status: 404, body: "<h1>\n\tNot   found</h1>\n" })?.beginning).toBe("<h1> Not found</h1>");
		expect(responseOf({ status: 502, body: `${"a".repeat(299)} b` })?.beginning).toBe(`${"a".repeat(299)}…`);
		expect(responseOf({ status: 502, body: "a".repeat(100_000) })?.beginning).toHaveLength(301);
	});

	it("has no beginning without text", () => {
		for (const body of [undefined, null, "", "  ", { base64: "/wA=" }]) {
			expect(responseOf({ status: 500, body })).toEqual({ status: 500, beginning: "" });
		}
	});

	it("is undefined if there was none", () => {
		expect(responseOf(undefined)).toBeUndefined();
		expect(responseOf({})).toBeUndefined();
		expect(responseOf({ run_id: "run_1", status: "failed" })).toBeUndefined();
	});
});

describe("hints", () => {
	it("tell whether the request or the server is at fault", () => {
		expect(hintFor("http_error", 400)).toMatch(/^The server rejected the request. Check what was sent/);
		expect(hintFor("http_error", 422)).toBe(hintFor("http_error", 404));
		expect(hintFor("http_error", 401)).toMatch(/credentials/);
		expect(hintFor("http_error", 403)).toBe(hintFor("http_error", 401));
		expect(hintFor("http_error", 429)).toMatch(/too many requests/);
		expect(hintFor("http_error", 500)).toMatch(/^The server failed. This may be temporary/);
		expect(hintFor("http_error", 503)).toBe(hintFor("http_error", 500));
		expect(hintFor("http_error", 302)).toMatch(/fail_on/);
		expect(hintFor("http_error")).toMatch(/4xx.*5xx/);
	});

	it("exist only for known codes", () => {
		expect(hintFor("timed_out", 500)).toMatch(/longer timeout/);
		expect(hintFor("made_up")).toBeUndefined();
	});
});
