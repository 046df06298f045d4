import { expect, it } from "vitest";
import type { Integration } from "@/shared/connections/data";
import type { Action } from "./actions";
import { adviceFor } from "./advice";
import { operationChoices, serviceTriggerChoices, stepChoices, stepOf, triggerChoices } from "./choices";
import { search } from "./search";

const action = (name: string, title: string, summary = "", keywords: string[] = []) =>
	({ name, title, summary, keywords }) as Action;
const all = stepChoices([
	action("http.request", "Call a URL", "Sends an HTTP request.", ["request", "api"]),
	action("graphql.request", "Call a GraphQL service", "", ["query"]),
	action("log.write", "Write to the log"),
	action("mail.post", "Post a message"),
	action("flow.wait", "Wait", "For a time, or until one.", ["delay", "sleep"]),
	action("flow.switch", "Branch", "", ["if", "if else", "switch", "filter", "split"]),
	action("flow.run", "Run another workflow", "Starts a run and, by default, waits; sleeps if told to."),
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
		name: "Mailchimp",
		keywords: ["newsletter"],
		operations: [operation("mailchimp.add_member", "Add a member")],
		triggers: [],
	},
	{
		name: "Gmail",
		keywords: ["email", "mail"],
		operations: [operation("gmail.send_message", "Send a message")],
		triggers: [],
	},
	{
		name: "Shopify",
		keywords: ["shop"],
		operations: [
			operation("shopify.get_order", "Get an order"),
			operation("shopify.find", "Find orders with a filter"),
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
	["split", "flow.switch"],
	["if", "flow.switch"],
	["if else", "flow.switch"],
	["branch", "flow.switch"],
	["switch", "flow.switch"],
	["filter", "flow.switch"],
	["loop", "foreach"],
	["iterate", "foreach"],
	["parallel", "foreach"],
	["while", "repeat"],
	["request", "http.request"],
	["API", "http.request"],
	["delay", "flow.wait"],
	["sleep", "flow.wait"],
	["delays", "flow.wait"],
])("finds %s first as %s", (typed, key) => {
	expect(keys(typed)[0]).toBe(key);
});

it.each([
	["slack chat", "slack.post_message"],
	["send telegram message", "telegram.send_message"],
	["bot", "telegram.send_message"],
	["chat post", "slack.post_message"],
	["email", "gmail.send_message"],
	["send emails", "gmail.send_message"],
	["mailchimp", "mailchimp.add_member"],
	["if", "flow.switch"],
	["filter", "flow.switch"],
	["shop", "shopify.get_order"],
])("finds the operation for %s", (typed, key) => {
	expect(search([...all, ...operationChoices(services)], typed)[0]?.key).toBe(key);
});

it("groups operations by service, without those that are replaced", () => {
	expect(operationChoices(services).map(({ key, group }) => [group, key])).toEqual([
		["Slack", "slack.post_message"],
		["Mailchimp", "mailchimp.add_member"],
		["Gmail", "gmail.send_message"],
		["Shopify", "shopify.get_order"],
		["Shopify", "shopify.find"],
		["Telegram", "telegram.send_message"],
	]);
});

it("ranks a name before a keyword, and a keyword before a description", () => {
	expect(keys("sleep")).toEqual(["flow.wait", "flow.run"]);
	expect(keys("wait")).toEqual(["flow.wait", "flow.run"]);
	const operations = operationChoices(services);
	expect(search(operations, "mail").map(({ key }) => key)).toEqual(["gmail.send_message", "mailchimp.add_member"]);
});

it("finds no two letters inside of words", () => {
	const found = search([...all, ...operationChoices(services)], "if").map(({ key }) => key);
	expect(found).not.toContain("shopify.get_order");
});

it.each([
	["try catch", "Error handling"],
	["retry", "Retry"],
	["merge", "Runs after"],
	["parallel", "add a branch"],
	["if", "Run when"],
])("advises where to set what is no step: %s", (typed, want) => {
	expect(adviceFor(typed)).toContain(want);
});

it("gives no advice about words that only contain another", () => {
	expect(adviceFor("notify")).toBeUndefined();
	expect(adviceFor("")).toBeUndefined();
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
	["cron", ["schedule"]],
	["rss", ["poll"]],
	["button", ["manual"]],
])("finds the triggers of services by the words people use: %s", (typed, want) => {
	const all = [...triggerChoices, ...serviceTriggerChoices(services)];
	expect(search(all, typed).map((choice) => choice.key)).toEqual(want);
});
