import { expect, test } from "vitest";
import { ApiError, errorOf, toApiError } from "@/api/error";
import { jsonLines } from "./json-lines";
import { nextIndex } from "./next-index";
import { sentence } from "./sentence";
import { duration, relativeTime } from "./time";

test.each([
	["the name is taken", "The name is taken."],
	["run_01m7 was not found", "run_01m7 was not found."],
	["steps[0].uses is unknown", "steps[0].uses is unknown."],
	["Already a sentence.", "Already a sentence."],
	["", ""],
])("%s reads %s", (text, expected) => {
	expect(sentence(text)).toBe(expected);
});

test.each([
	[0, "0 ms"],
	[999, "999 ms"],
	[1_000, "1.0 s"],
	[9_940, "9.9 s"],
	[59_400, "59 s"],
	[60_000, "1 min 0 s"],
	[3_599_000, "59 min 59 s"],
	[3_600_000, "1 h 0 min"],
	[90_000_000, "1 d 1 h"],
])("%i ms is %s", (ms, expected) => {
	expect(duration(ms)).toBe(expected);
});

test("formats relative times", () => {
	const now = Date.parse("2026-11-15T12:00:00Z");
	expect(relativeTime(now - 2_000, now)).toBe("just now");
	expect(relativeTime(now - 30_000, now)).toBe("30 seconds ago");
	expect(relativeTime(now - 3_599_000, now)).toBe("59 minutes ago");
	expect(relativeTime(now + 7_200_000, now)).toBe("in 2 hours");
	expect(relativeTime(now - 86_400_000, now)).toBe("yesterday");
});

const shown = (value: unknown, closed: string[] = []) =>
	jsonLines(value, (path) => closed.includes(path)).map((line) => {
		const key = line.key === undefined ? "" : `${line.key}: `;
		return `${" ".repeat(line.depth)}${key}${line.text}${line.last || line.kind === "open" ? "" : ","}`;
	});

test("formats a JSON value line by line", () => {
	expect(shown({ a: 1, "b/c": [true, null, "x"], d: {} })).toEqual([
		"{",
		" a: 1,",
		" b/c: [",
		"  true,",
		"  null,",
		'  "x"',
		" ],",
		" d: {}",
		"}",
	]);
	expect(shown({ "b/c": [1], d: 2 }, ["/b~1c"])).toEqual(["{", " b/c: […],", " d: 2", "}"]);
	expect(shown("text")).toEqual(['"text"']);
	expect(shown(undefined)).toEqual(["null"]);
});

test("truncates very long texts and lists", () => {
	expect(jsonLines("x".repeat(1_000_000), () => false)[0]?.text.length).toBeLessThan(2_100);
	expect(jsonLines(Array(1_000).fill(0), () => false, 100).length).toBeLessThanOrEqual(101);
});

test("converts every failure to an ApiError", () => {
	const failure = {
		error: {
			code: "invalid_request",
			message: "no",
			request_id: "req_1",
			details: [{ pointer: "/name", message: "too long" }],
		},
	};
	const error = errorOf(new Response(null, { status: 429, headers: { "Retry-After": "3" } }), failure);
	expect(error).toMatchObject({
		status: 429,
		code: "invalid_request",
		message: "no",
		requestId: "req_1",
		retryAfter: 3,
	});
	expect(error.field("/name")).toBe("too long");
	expect(error.field("/other")).toBeUndefined();
	expect(errorOf(new Response(null, { status: 502, headers: { "X-Request-Id": "req_2" } }), undefined)).toMatchObject({
		status: 502,
		code: "unexpected",
		requestId: "req_2",
	});
	expect(toApiError(new TypeError("Failed to fetch"))).toMatchObject({ status: 0, code: "unreachable" });
	expect(toApiError("text")).toBeInstanceOf(ApiError);
});

test.each([
	["ArrowDown", 0, 3, 1],
	["ArrowDown", 2, 3, 0],
	["ArrowUp", 0, 3, 2],
	["PageDown", 1, 20, 9],
	["PageDown", 15, 20, 19],
	["PageUp", 3, 20, 0],
	["ArrowDown", -1, 0, null],
	["a", 0, 3, null],
])("%s from option %i of %i leads to %s", (key, at, count, expected) => {
	expect(nextIndex(key, at, count)).toBe(expected);
});
