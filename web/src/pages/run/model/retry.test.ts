import { describe, expect, it } from "vitest";
import { retryChoices } from "./retry";

const failed = { status: "failed", draft: false, workflow_version: 4 } as const;
const labels = (...args: Parameters<typeof retryChoices>) =>
	retryChoices(...args).map(({ version, label }) => `${version}: ${label}`);

describe("retryChoices", () => {
	it("offers the current version first when there is a newer one", () => {
		expect(labels(failed, 5)).toEqual(["current: Retry with v5 (current)", "pinned: Retry with v4 (original)"]);
		expect(labels({ ...failed, status: "cancelled" }, 5)).toHaveLength(2);
	});

	it("offers one choice if the run has the current version, or if that is unknown", () => {
		expect(labels(failed, 4)).toEqual(["pinned: Retry from the failed step"]);
		expect(labels(failed, undefined)).toEqual(["pinned: Retry from the failed step"]);
		expect(labels({ ...failed, status: "cancelled" }, 4)).toEqual(["pinned: Retry"]);
	});

	it("offers the saved version as well as the draft", () => {
		expect(labels({ ...failed, draft: true }, 4)).toEqual([
			"current: Retry with v4 (current)",
			"pinned: Retry with the draft (original)",
		]);
	});

	it("offers nothing for a running or successful run", () => {
		expect(labels({ ...failed, status: "running" }, 5)).toEqual([]);
		expect(labels({ ...failed, status: "succeeded" }, 5)).toEqual([]);
	});
});
