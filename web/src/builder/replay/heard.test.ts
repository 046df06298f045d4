import { describe, expect, test } from "vitest";
import type { Schema } from "@/api/client";
import { follow, hear, silence } from "./heard";

const step = (id: string, status: string) => ({ step_id: id, status, attempt: 1 });
const read = (finished_at: string | null, ...steps: object[]) =>
	({ id: "run_1", status: "running", finished_at, steps }) as unknown as Schema["Run"];

describe("a run that is followed", () => {
	test("knows the last word on each step", () => {
		const heard = [
			{ type: "run", data: { status: "running" } },
			{ type: "step", data: step("get", "running") },
			{ type: "log", data: { message: "hello" } },
			{ type: "step", data: step("get", "succeeded") },
			{ type: "step", data: step("set", "running") },
		].reduce(hear, silence);
		const { steps, ended } = follow(undefined, heard);
		expect(steps.map((one) => `${one.step_id} ${one.status}`)).toEqual(["get succeeded", "set running"]);
		expect(ended).toBe(false);
		expect(hear(heard, { type: "end", data: {} }).ended).toBe(true);
	});

	test("keeps what the stream leaves out", () => {
		const heard = hear(silence, { type: "step", data: step("get", "succeeded") });
		const { steps } = follow(read(null, { ...step("get", "running"), input: { url: "a" } }), heard);
		expect(steps).toEqual([{ ...step("get", "succeeded"), input: { url: "a" } }]);
	});

	test("is as it was read once it has ended", () => {
		const heard = hear(silence, { type: "step", data: step("get", "running") });
		const { steps, ended } = follow(read("2026-11-15T00:00:00Z", step("get", "failed")), heard);
		expect([steps[0]?.status, ended]).toEqual(["failed", true]);
	});
});
