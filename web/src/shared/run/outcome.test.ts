import { describe, expect, it } from "vitest";
import { executionOutcome } from "./outcome";

describe("what became of a step", () => {
	const approval = { type: "flow.approval", status: "succeeded" } as const;

	it("is a rejection if an approval was not granted", () => {
		expect(executionOutcome({ ...approval, output: { approved: false, by: "user_1" } })).toBe("rejected");
		expect(executionOutcome({ ...approval, output: { approved: true } })).toBe("succeeded");
	});

	it("is its status otherwise", () => {
		expect(executionOutcome(approval)).toBe("succeeded");
		expect(executionOutcome({ ...approval, status: "failed", output: { approved: false } })).toBe("failed");
		expect(executionOutcome({ type: "data.set", status: "succeeded", output: { approved: false } })).toBe("succeeded");
	});
});
