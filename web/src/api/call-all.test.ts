import { expect, test } from "vitest";
import { callAll, type Progress } from "./call-all";
import { ApiError } from "./error";

test("makes one call per item, a few at a time, and collects failures", async () => {
	const items = Array.from({ length: 20 }, (_, i) => `r${i}`);
	let open = 0;
	let most = 0;
	const told: Progress<string>[] = [];
	const one = async (item: string) => {
		open += 1;
		most = Math.max(most, open);
		await Promise.resolve();
		open -= 1;
		if (item === "r7") throw new Error("it has ended");
	};
	const end = await callAll(items, one, (progress) => told.push(progress), new AbortController().signal);
	expect(end.done).toBe(20);
	expect(end.failed.map(({ item, error }) => `${item}: ${error.message}`)).toEqual(["r7: it has ended"]);
	expect(most).toBeLessThanOrEqual(4);
	expect(told).toHaveLength(20);
});

test("stops on abort, and retries when rate limited", async () => {
	const none = await callAll(
		["a"],
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
	const end = await callAll(["a"], busy, () => undefined, new AbortController().signal);
	expect([calls, end.failed.length]).toEqual([2, 0]);
});
