import { describe, expect, it } from "vitest";
import { shortCondition } from "./short-condition";

describe("the label of a condition", () => {
	it.each([
		["total > 100", "total > 100"],
		["!steps.ask.output.approved", "!steps.ask.output.approved"],
		['trigger.payload.customer.region == "emea"', '…region == "emea"'],
		["!(steps.check_the_order.output.valid)", "!(…valid)"],
		["len(steps.get.output.body.items[0].lines) > 0", "len(…lines) > 0"],
		['trigger.payload.customer.address?.city == "a.b.c.d"', '…city == "a.b.c.d"'],
	])("shows the end of each path: %s", (text, want) => {
		expect(shortCondition(text)).toBe(want);
	});

	it("keeps what differs between the paths of a split", () => {
		const of = (region: string) => shortCondition(`trigger.payload.customer.region == "europe-${region}-production"`);
		expect(of("west")).toContain("west-production");
		expect(of("east")).toContain("east-production");
	});

	it("drops the middle of what is still too long", () => {
		const short = shortCondition("alpha > 1 && beta > 2 && gamma > 3 && delta > 4");
		expect(short).toMatch(/^alpha > ….*delta > 4$/);
		expect(short.length).toBeLessThanOrEqual(27);
	});
});
