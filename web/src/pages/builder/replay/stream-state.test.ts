import { describe, expect, test } from "vitest";
import type { Schema } from "@/api/client";
import { applyEvent, emptyStream, mergeRun } from "./stream-state";

const step = (id: string, status: string) => ({ step_id: id, status, attempt: 1 });
const read = (finished_at: string | null, ...steps: object[]) =>
	({ id: "run_1", status: "running", finished_at, steps }) as unknown as Schema["Run"];

describe("a followed run", () => {
	test("uses the latest event of each step", () => {
		const stream = [
			{ type: "run", data: { status: "running" } },
			{ type: "step", data: step("get", "running") },
			{ type: "log", data: { message: "hello" } },
			{ type: "step", data: step("get", "succeeded") },
			{ type: "step", data: step("set", "running") },
		].reduce(applyEvent, emptyStream);
		const { steps, ended } = mergeRun(undefined, stream);
		expect(steps.map((one) => `${one.step_id} ${one.status}`)).toEqual(["get succeeded", "set running"]);
		expect(ended).toBe(false);
		expect(applyEvent(stream, { type: "end", data: {} }).ended).toBe(true);
	});

	test("keeps fetched data that the stream omits", () => {
		const stream = applyEvent(emptyStream, { type: "step", data: step("get", "succeeded") });
		const { steps } = mergeRun(read(null, { ...step("get", "running"), input: { url: "a" } }), stream);
		expect(steps).toEqual([{ ...step("get", "succeeded"), input: { url: "a" } }]);
	});

	test("uses the fetched run once it has ended", () => {
		const stream = applyEvent(emptyStream, { type: "step", data: step("get", "running") });
		const { steps, ended } = mergeRun(read("2026-11-15T00:00:00Z", step("get", "failed")), stream);
		expect([steps[0]?.status, ended]).toEqual(["failed", true]);
	});
});
