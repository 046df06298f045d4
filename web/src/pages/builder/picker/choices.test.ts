import { expect, it } from "vitest";
import type { Integration } from "@/shared/connections/data";
import type { Action } from "./actions";
import { operationChoices, search, serviceTriggerChoices, stepChoices, stepOf, triggerChoices } from "./choices";

const action = (name: string, title: string, summary = "") => ({ name, title, summary }) as Action;
const all = stepChoices([
	action("http.request", "Call a URL", "Sends an HTTP request."),
	action("graphql.request", "Call a GraphQL service"),
	action("log.write", "Write to the log"),
	action("mail.post", "Post a message"),
	action("flow.wait", "Wait", "For a time, or until one."),
]);
const operation = (action: string, title: string, deprecated: object | null = null) => ({
	action,
	title,
	summary: null,
	deprecated,
});
const services = [
	{
		name: "Slack",
		keywords: ["chat"],
		operations: [
			operation("slack.post_message", "Post a message"),
			operation("slack.send", "Post", { since: "", use: "slack.post_message", ends: "" }),
		],
		triggers: [],
	},
	{
		name: "Telegram",
		keywords: ["bot"],
		operations: [operation("telegram.send_message", "Send a message")],
		triggers: [
			{ type: "telegram.new_message", title: "New message", summary: null, deprecated: null },
			{ type: "telegram.message", title: "Message", summary: null, deprecated: { since: "", use: "", ends: "" } },
		],
	},
] as unknown as Integration[];
const keys = (typed: string) => search(all, typed).map((choice) => choice.key);

it("groups actions with the blocks, services last", () => {
	expect([...new Set(all.map((choice) => choice.group))]).toEqual(["Web", "Data", "Flow", "Services"]);
	expect(all.some((choice) => choice.key === "foreach")).toBe(true);
});

it.each([
	["http", "http.request"],
	["url", "http.request"],
	["graphql", "graphql.request"],
	["for each", "foreach"],
	["wait", "flow.wait"],
])("finds %s first as %s", (typed, key) => {
	expect(keys(typed)[0]).toBe(key);
});

it.each([
	["slack chat", "slack.post_message"],
	["send telegram message", "telegram.send_message"],
	["bot", "telegram.send_message"],
	["chat post", "slack.post_message"],
])("finds the operation for %s", (typed, key) => {
	expect(search([...all, ...operationChoices(services)], typed)[0]?.key).toBe(key);
});

it("groups operations by service, without those that are replaced", () => {
	expect(operationChoices(services).map(({ key, group }) => [group, key])).toEqual([
		["Slack", "slack.post_message"],
		["Telegram", "telegram.send_message"],
	]);
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

it.each([
	["new message telegram", ["telegram.new_message"]],
	["bot", ["telegram.new_message"]],
	["webhook", ["webhook"]],
])("finds the triggers of services by the words people use: %s", (typed, want) => {
	const all = [...triggerChoices, ...serviceTriggerChoices(services)];
	expect(search(all, typed).map((choice) => choice.key)).toEqual(want);
});
