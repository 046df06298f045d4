import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Known, missing } from "./missing";
import { type Answer, Previews, previewFor, type Question } from "./preview";

const nothing: Known = { trigger: false, steps: new Set(), failed: new Set(), item: false, response: false };
const all: Known = { trigger: true, steps: new Set(["get"]), failed: new Set(), item: true, response: true };

describe("missing data", () => {
	test.each<[string, string[]]>([
		["${{ steps.get.output.body }}", ["steps.get"]],
		['${{ steps["get"].output }} and ${{ trigger.payload.id }}', ["steps.get", "trigger"]],
		["${{ item.sku + index }}", ["item"]],
		["${{ vars.shop ?? 1 }}", []],
		["${{ run.id }} ${{ x.steps.get }}", []],
		["steps.get without brackets", []],
	])("%s", (text, needs) => {
		expect(missing(text, "template", nothing)).toEqual(needs);
	});

	test("available data is not missing", () => {
		expect(missing("steps.get.output.total > trigger.payload.limit", "bare", all)).toEqual([]);
	});
});

describe("a result", () => {
	const ask = { text: "steps.get.output.total > 100", form: "bare" as const };
	const failed: Answer = {
		valid: false,
		error: { code: "expression_failed", message: "cannot use > on nil and int", line: 1, column: 24 },
	};

	test("without the data is not an error", () => {
		expect(previewFor(ask, failed, nothing)).toEqual({ state: "missing", needs: ["steps.get"] });
	});

	test("that fails with the data of a run is not a mistake in the expression", () => {
		const message = "cannot use > on nil and int";
		expect(previewFor(ask, failed, all)).toEqual({ state: "failed", steps: [], message });
		const broken = { ...all, steps: new Set(["get", "other"]), failed: new Set(["get", "other"]) };
		expect(previewFor(ask, failed, broken)).toEqual({ state: "failed", steps: ["get"], message });
	});

	test("with a mistake is an error even if data is missing", () => {
		const invalid: Answer = { valid: false, error: { code: "expression_invalid", message: "no", line: 1, column: 2 } };
		expect(previewFor(ask, invalid, nothing)).toEqual({ state: "wrong", message: "no", line: 1, column: 2 });
	});

	test("of nil without data says what to run", () => {
		const nil: Answer = { valid: true, value: null, type: "null" };
		expect(previewFor(ask, nil, nothing)).toEqual({ state: "missing", needs: ["steps.get"] });
		expect(previewFor(ask, nil, all)).toEqual({ state: "value", value: null, type: "null" });
	});
});

describe("the fields of a form", () => {
	const asked: Question[][] = [];
	const answer = async (questions: readonly Question[]) => {
		asked.push([...questions]);
		return questions.map(
			(question): Answer => ({ valid: true, value: String(Object.values(question)[0]), type: "string" }),
		);
	};

	beforeEach(() => {
		asked.length = 0;
		vi.useFakeTimers();
	});
	afterEach(() => {
		vi.useRealTimers();
	});

	test("are evaluated together when typing pauses", async () => {
		const previews = new Previews(answer, all);
		previews.ask("/a", { text: "${{ 1", form: "template" });
		await vi.advanceTimersByTimeAsync(100);
		previews.ask("/a", { text: "${{ 1 }}", form: "template" });
		previews.ask("/b", { text: "run.id", form: "bare" });
		previews.ask("/c", { text: "plain", form: "template" });
		expect(previews.of("/a")).toEqual({ state: "asking" });
		await vi.advanceTimersByTimeAsync(250);
		expect(asked).toEqual([[{ template: "${{ 1 }}" }, { expression: "run.id" }]]);
		expect(previews.of("/a")).toMatchObject({ state: "value", value: "${{ 1 }}" });
		expect(previews.of("/c")).toEqual({ state: "none" });
	});

	test("are evaluated again if they change, or if the data changes", async () => {
		const previews = new Previews(answer, all);
		previews.ask("/a", { text: "1", form: "bare" });
		previews.ask("/b", { text: "2", form: "bare" });
		await vi.advanceTimersByTimeAsync(250);
		previews.ask("/b", { text: "3", form: "bare" });
		expect(previews.of("/b")).toMatchObject({ state: "asking", last: { value: "2" } });
		await vi.advanceTimersByTimeAsync(250);
		previews.use(answer, all);
		await vi.advanceTimersByTimeAsync(250);
		expect(asked.map((list) => list.length)).toEqual([2, 1, 2]);
	});

	test("ignore outdated results", async () => {
		const waiting: ((answers: Answer[]) => void)[] = [];
		const previews = new Previews(() => new Promise((resolve) => waiting.push(resolve)), all);
		previews.ask("/a", { text: "1", form: "bare" });
		await vi.advanceTimersByTimeAsync(250);
		previews.ask("/a", { text: "", form: "bare" });
		waiting[0]?.([{ valid: true, value: 1, type: "number" }]);
		await vi.advanceTimersByTimeAsync(0);
		expect(previews.of("/a")).toEqual({ state: "none" });
	});

	test("show no error if the server does not respond", async () => {
		const previews = new Previews(() => Promise.reject(new Error("gone")), all);
		previews.ask("/a", { text: "1", form: "bare" });
		await vi.advanceTimersByTimeAsync(250);
		expect(previews.of("/a")).toEqual({ state: "unknown" });
	});
});
