import { describe, expect, it } from "vitest";
import { eligible } from "./bulk";
import type { Run } from "./merge";

const run = (id: string, status: Run["status"]) => ({ id, status }) as Run;

describe("bulk", () => {
	it("selects the runs that an action applies to", () => {
		const runs = [run("a", "running"), run("b", "failed"), run("c", "cancelled"), run("d", "succeeded")];
		expect(eligible(runs, "cancel").map((one) => one.id)).toEqual(["a"]);
		expect(eligible(runs, "retry").map((one) => one.id)).toEqual(["b", "c"]);
	});
});
