import { expect, it } from "vitest";
import type { Action } from "./actions";
import { search, stepChoices, stepOf } from "./choices";

const action = (name: string, title: string, summary = "") => ({ name, title, summary }) as Action;
const all = stepChoices([
	action("http.request", "Call a URL", "Sends an HTTP request."),
	action("log.write", "Write to the log"),
	action("slack.post", "Post a message"),
	action("flow.wait", "Wait", "For a time, or until one."),
]);
const keys = (typed: string) => search(all, typed).map((choice) => choice.key);

it("groups actions with the blocks, services last", () => {
	expect([...new Set(all.map((choice) => choice.group))]).toEqual(["Web", "Data", "Flow", "Services"]);
	expect(all.some((choice) => choice.key === "foreach")).toBe(true);
});

it.each([
	["http", "http.request"],
	["url", "http.request"],
	["for each", "foreach"],
	["wait", "flow.wait"],
	["split", "split"],
])("finds %s first as %s", (typed, key) => {
	expect(keys(typed)[0]).toBe(key);
});

it("requires every word to match", () => {
	expect(keys("call zebra")).toEqual([]);
	expect(keys("")).toHaveLength(all.length);
});

it("creates a step with the action's title and a short id", () => {
	expect(stepOf({ name: "http.request", title: "Call a URL" })).toEqual({
		id: "request",
		name: "Call a URL",
		uses: "http.request",
	});
});
