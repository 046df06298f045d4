import { describe, expect, it } from "vitest";
import { ApiError } from "@/api/error";
import { eligible, type Progress, runAll } from "./bulk";
import type { Run } from "./merge";

const run = (id: string, status: Run["status"]) => ({ id, status }) as Run;

describe("bulk", () => {
	it("selects the runs that an action applies to", () => {
		const runs = [run("a", "running"), run("b", "failed"), run("c", "cancelled"), run("d", "succeeded")];
		expect(eligible(runs, "cancel").map((one) => one.id)).toEqual(["a"]);
		expect(eligible(runs, "retry").map((one) => one.id)).toEqual(["b", "c"]);
	});

	it("makes one call per run, a few at a time, and collects failures", async () => {
		const runs = Array.from({ length: 20 }, (_, i) => run(`r${i}`, "running"));
		let open = 0;
		let most = 0;
		const told: Progress[] = [];
		const one = async ({ id }: Run) => {
			open += 1;
			most = Math.max(most, open);
			await Promise.resolve();
			open -= 1;
			if (id === "r7") throw new Error("it has ended");
		};
		const end = await runAll(runs, one, (progress) => told.push(progress), new AbortController().signal);
		expect(end.done).toBe(20);
		expect(end.failed.map(({ run: { id }, error }) => `${id}: ${error.message}`)).toEqual(["r7: it has ended"]);
		expect(most).toBeLessThanOrEqual(4);
		expect(told).toHaveLength(20);
	});

	it("stops on abort, and retries when rate limited", async () => {
		const stop = new AbortController();
		const none = await runAll(
			[run("a", "running")],
			async () => undefined,
			() => undefined,
			AbortSignal.abort(),
		);
		expect(none.done).toBe(0);
		let calls = 0;
		const busy = async () => {
			calls += 1;
			if (calls === 1) throw new ApiError(429, "rate_limited", "slow down", [], "", 0);
		};
		const end = await runAll([run("a", "running")], busy, () => undefined, stop.signal);
		expect([calls, end.failed.length]).toEqual([2, 0]);
	});
});
