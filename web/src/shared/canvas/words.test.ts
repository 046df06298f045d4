import { describe, expect, it } from "vitest";
import { bareExpression, formatDuration, frameWords, triggerWords } from "./words";

describe("frameWords", () => {
	it("describes the list and the parallelism of a foreach", () => {
		expect(frameWords({ foreach: `\${{ trigger.payload.body.lines }}`, parallel: 5 })).toEqual([
			"For each",
			"body.lines",
			"5 at a time",
		]);
		expect(frameWords({ foreach: "steps.get.output.items" })).toEqual(["For each", "steps.get.output.items"]);
	});

	it("describes the condition of a repeat", () => {
		expect(frameWords({ repeat: { until: "steps.poll.output.done", every: "30s", max: 20 } })).toEqual([
			"Until steps.poll.output.done",
			"every 30 s",
			"at most 20",
		]);
		expect(frameWords({ repeat: { until: "" } })).toEqual(["Until …"]);
	});
});

describe("formatting", () => {
	it("formats durations and leaves other text unchanged", () => {
		expect(["30s", "1m30s", "250ms", "2h", "soon"].map(formatDuration)).toEqual([
			"30 s",
			"1 min 30 s",
			"250 ms",
			"2 h",
			"soon",
		]);
	});

	it("removes the braces around an expression", () => {
		expect(bareExpression(`\${{ a\n\t== b }}`)).toBe("a == b");
		expect(bareExpression("a == b")).toBe("a == b");
	});

	it("describes a trigger by its most informative setting", () => {
		expect(triggerWords({ id: "nightly", type: "schedule", every: "15m" })).toBe("every 15 min");
		expect(triggerWords({ id: "hook", type: "webhook" })).toBe("hook");
	});
});
