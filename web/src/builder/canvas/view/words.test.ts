import { describe, expect, it } from "vitest";
import { bare, frameWords, span, triggerWords } from "./words";

describe("frameWords", () => {
	it("says what is gone through, and how many at a time", () => {
		expect(frameWords({ foreach: `\${{ trigger.payload.body.lines }}`, parallel: 5 })).toEqual([
			"For each",
			"body.lines",
			"5 at a time",
		]);
		expect(frameWords({ foreach: "steps.get.output.items" })).toEqual(["For each", "steps.get.output.items"]);
	});

	it("says until when something is repeated", () => {
		expect(frameWords({ repeat: { until: "steps.poll.output.done", every: "30s", max: 20 } })).toEqual([
			"Until steps.poll.output.done",
			"every 30 s",
			"at most 20",
		]);
		expect(frameWords({ repeat: { until: "" } })).toEqual(["Until …"]);
	});
});

describe("words of the definition", () => {
	it("spells durations, and leaves what is none as it is", () => {
		expect(["30s", "1m30s", "250ms", "2h", "soon"].map(span)).toEqual(["30 s", "1 min 30 s", "250 ms", "2 h", "soon"]);
	});

	it("takes the braces off an expression", () => {
		expect(bare(`\${{ a\n\t== b }}`)).toBe("a == b");
		expect(bare("a == b")).toBe("a == b");
	});

	it("names a trigger by its most telling setting", () => {
		expect(triggerWords({ id: "nightly", type: "schedule", every: "15m" })).toBe("every 15 min");
		expect(triggerWords({ id: "hook", type: "webhook" })).toBe("hook");
	});
});
