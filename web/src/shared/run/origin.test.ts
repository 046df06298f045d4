import { describe, expect, it } from "vitest";
import { originOf } from "./origin";

describe("originOf", () => {
	it("names who started a run", () => {
		expect(originOf("manual", { type: "user", id: "usr_1", name: "Ada" })).toBe("Run by Ada");
		expect(originOf("manual", { type: "api_key", id: "key_1", name: "CI" })).toBe("API key “CI”");
		expect(originOf("manual", { type: "api_key", id: "key_1", name: null })).toBe("API key key_1");
	});

	it("names who retried or tested a triggered run", () => {
		expect(originOf("webhook", { type: "user", id: "usr_1", name: "Ada" })).toBe("Webhook, by Ada");
	});

	it("names the trigger if nobody started the run", () => {
		expect(originOf("schedule", null)).toBe("Schedule");
		expect(originOf("manual", null)).toBe("Manual");
	});
});
