import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "./error";
import { isUnreachable, loadChunk, Recovery } from "./recovery";

let up: boolean;
let asked: number;
let recovery: Recovery;

beforeEach(() => {
	vi.useFakeTimers();
	up = false;
	asked = 0;
	recovery = new Recovery(async () => {
		asked += 1;
		return up;
	});
});

afterEach(() => {
	vi.useRealTimers();
	vi.unstubAllGlobals();
});

test.each([
	[new TypeError("Failed to fetch"), true],
	[new ApiError(502, "unexpected", "The server answered 502."), true],
	[new ApiError(504, "unexpected", "The server answered 504."), true],
	[new ApiError(503, "read_only", "The service is in safe mode."), false],
	[new ApiError(500, "internal_error", "Something went wrong."), false],
	[new ApiError(404, "run_not_found", "There is no such run."), false],
	[new Error("A bug"), false],
])("%s means that the server is unreachable: %s", (error, expected) => {
	expect(isUnreachable(error)).toBe(expected);
});

test("retries failed work once when the server is back", async () => {
	const retry = vi.fn();
	const other = vi.fn();
	recovery.add(retry);
	recovery.add(other);
	await vi.advanceTimersByTimeAsync(60_000);
	expect(asked).toBeGreaterThan(2);
	expect(retry).not.toHaveBeenCalled();
	up = true;
	await vi.advanceTimersByTimeAsync(30_000);
	expect(retry).toHaveBeenCalledTimes(1);
	expect(other).toHaveBeenCalledTimes(1);
	const before = asked;
	await vi.advanceTimersByTimeAsync(300_000);
	expect(asked).toBe(before);
	expect(retry).toHaveBeenCalledTimes(1);
});

test("retries at once when told that the server is back", async () => {
	const retry = vi.fn();
	recovery.add(retry);
	recovery.recover();
	expect(retry).toHaveBeenCalledTimes(1);
	await vi.advanceTimersByTimeAsync(300_000);
	expect(asked).toBe(0);
});

test("does not retry or probe after the retry was removed", async () => {
	const retry = vi.fn();
	recovery.add(retry)();
	up = true;
	await vi.advanceTimersByTimeAsync(300_000);
	expect(retry).not.toHaveBeenCalled();
	expect(asked).toBe(0);
});

test("backs off while retries keep failing", async () => {
	up = true;
	let failures = 0;
	const fail = () => {
		failures += 1;
		recovery.add(fail);
	};
	recovery.add(fail);
	await vi.advanceTimersByTimeAsync(120_000);
	expect(failures).toBeGreaterThan(3);
	expect(failures).toBeLessThan(10);
});

test("reports why a chunk cannot be loaded", async () => {
	const missing = new TypeError("Failed to fetch dynamically imported module");
	const load = () => Promise.reject(missing);
	vi.stubGlobal("fetch", () => Promise.reject(new TypeError("Failed to fetch")));
	await expect(loadChunk(load)).rejects.toMatchObject({ code: "page_unreachable" });
	vi.stubGlobal("fetch", async () => new Response("ok"));
	await expect(loadChunk(load)).rejects.toBe(missing);
	await expect(loadChunk(async () => 7)).resolves.toBe(7);
});
