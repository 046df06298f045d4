import { describe, expect, it } from "vitest";
import { nextRound, overlay, type RunStep, readPath, type Status } from "./overlay";

const step = (step_id: string, status: Status): RunStep => ({
	step_id,
	status,
	attempt: 1,
	started_at: "2026-01-01T00:00:00Z",
	finished_at: null,
	duration_ms: 5,
	error: null,
	reason: null,
});

describe("overlay", () => {
	const steps = [
		step("get", "succeeded"),
		step("lines", "running"),
		step("lines[0].reserve", "succeeded"),
		step("lines[0].tell", "skipped"),
		step("lines[1].reserve", "failed"),
		step("lines[2].reserve", "running"),
		step("lines[3].parts", "running"),
		step("lines[3].parts[0].weigh", "succeeded"),
		step("lines[10].reserve", "failed"),
	];

	it("shows the first failed round", () => {
		const { nodes, loops } = overlay(steps);
		expect(nodes.get("get")?.status).toBe("succeeded");
		expect(nodes.get("reserve")?.step_id).toBe("lines[1].reserve");
		expect(nodes.has("tell")).toBe(false);
		const lines = loops.get("lines");
		expect(lines?.rounds.map((round) => round.index)).toEqual([1, 10, 0, 2, 3]);
		expect(lines).toMatchObject({ shown: 1, label: "1/5 · 2 failed", path: "lines" });
	});

	it("shows the selected round and its nested loops", () => {
		const { nodes, loops } = overlay(steps, { lines: 3 });
		expect(nodes.get("weigh")?.step_id).toBe("lines[3].parts[0].weigh");
		expect(loops.get("parts")).toMatchObject({ path: "lines[3].parts", shown: 0, label: "1/1" });
		expect(overlay(steps, { lines: 0 }).nodes.get("tell")?.status).toBe("skipped");
	});

	it("prefers the server's count of rounds", () => {
		const counted = { lines: { total: 40, counts: { succeeded: 38, failed: 2 } } };
		expect(overlay(steps, {}, counted).loops.get("lines")?.label).toBe("38/40 · 2 failed");
		const repeat = { lines: { total: null, counts: { succeeded: 7, running: 1 } } };
		expect(overlay(steps, {}, repeat).loops.get("lines")?.label).toBe("8 rounds");
	});

	it("steps through rounds, failed ones first", () => {
		const lines = overlay(steps).loops.get("lines");
		if (!lines) throw new Error("no loop");
		expect(nextRound(lines, 1)).toBe(10);
		expect(nextRound(lines, -1)).toBe(3);
		expect(nextRound({ ...lines, rounds: [], shown: null }, 1)).toBeNull();
	});

	it("parses paths", () => {
		expect(readPath("lines[3].parts[0].weigh")).toEqual([
			{ id: "lines", index: 3 },
			{ id: "parts", index: 0 },
			{ id: "weigh" },
		]);
	});
});
