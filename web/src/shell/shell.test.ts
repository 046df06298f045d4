import { expect, test } from "vitest";
import { type Command, commandsOf, parseQuery, rank, score } from "./commands";
import { readSearch, writeSearch } from "./filters";
import { keyName } from "./keys";
import { isInternalPath } from "./require-session";

test.each([
	["/runs?status=failed", true],
	["/", true],
	["//example.com", false],
	["/\\example.com", false],
	["https://example.com", false],
	["javascript:alert(1)", false],
	["/sign-in?next=/sign-in", false],
	["", false],
	[undefined, false],
])("%s is an internal path: %s", (next, expected) => {
	expect(isInternalPath(next)).toBe(expected);
});

test("filters in the URL are plain text", () => {
	expect(readSearch("?status=failed&text=a+b%26c&n=1")).toEqual({ status: "failed", text: "a b&c", n: "1" });
	expect(writeSearch({ status: "failed", text: "", none: undefined, gone: null })).toBe("?status=failed");
	expect(writeSearch({})).toBe("");
	const text = "ä&=?#/ \"'";
	expect(readSearch(writeSearch({ text }))).toEqual({ text });
});

const key = (key: string, more: Partial<KeyboardEvent> = {}) =>
	keyName({ key, metaKey: false, ctrlKey: false, altKey: false, shiftKey: false, ...more });

test("key names match the notation of shortcuts", () => {
	expect(key("k", { ctrlKey: true })).toBe("Mod+K");
	expect(key("?", { shiftKey: true })).toBe("?");
	expect(key("g")).toBe("G");
	expect(key("Z", { ctrlKey: true, shiftKey: true })).toBe("Mod+Shift+Z");
	expect(key("Enter", { ctrlKey: true })).toBe("Mod+Enter");
	expect(key("ArrowUp", { altKey: true })).toBe("Alt+ArrowUp");
});

const command = (group: Command["group"], name: string): Command => ({
	id: `${group}${name}`,
	group,
	name,
	run: () => undefined,
});

test("the palette shows the best matches first", () => {
	const list = [
		command("Create", "New webhook"),
		command("Go to", "Secrets & variables"),
		command("Go to", "Webhooks"),
		command("Create", "New workflow"),
		command("Go to", "Workflows"),
	];
	expect(rank(list, "w").map((one) => one.name)).toEqual(["Webhooks", "Workflows", "New webhook", "New workflow"]);
	expect(rank(list, "nothing")).toEqual([]);
	expect(score("Secrets & variables", "var")).toBe(1);
	expect(score("Daily order report", "report daily")).toBe(3);
});

test.each([
	["  order intake ", { query: "order intake", toRun: false }],
	["run order intake", { query: "order intake", toRun: true }],
	["RUN  x", { query: "x", toRun: true }],
	["run", { query: "run", toRun: false }],
	["run ", { query: "run", toRun: false }],
	["run_01m7", { query: "run_01m7", toRun: false }],
	["", { query: "", toRun: false }],
])("what “%s” searches for", (text, expected) => {
	expect(parseQuery(text)).toEqual(expected);
});

test("results keep the server's order", () => {
	const done: string[] = [];
	const steps = {
		openWorkflow: (id: string) => done.push(`open ${id}`),
		openRun: (id: string) => done.push(`run ${id}`),
		openTemplate: (name: string) => done.push(`template ${name}`),
		start: (id: string) => done.push(`start ${id}`),
	};
	const found = {
		workflows: [
			{ id: "wf_2", name: "Orders" },
			{ id: "wf_1", name: "All orders" },
		],
		runs: [{ id: "run_1", workflow_name: "Orders" }],
		templates: [{ name: "orders", title: "Take orders" }],
	};
	const ids = (toRun: boolean) => commandsOf(found, steps, toRun).map((one) => one.id);
	expect(ids(false)).toEqual(["wf_2", "wf_1", "run-wf_2", "run-wf_1", "run_1", "template-orders"]);
	expect(ids(true)).toEqual(["run-wf_2", "run-wf_1", "wf_2", "wf_1", "run_1", "template-orders"]);
	const readOnly = commandsOf(found, { ...steps, start: undefined }, false);
	expect(readOnly.map((one) => one.id)).toEqual(["wf_2", "wf_1", "run_1", "template-orders"]);
	for (const one of commandsOf(found, steps, false)) one.run();
	expect(done).toEqual(["open wf_2", "open wf_1", "start wf_2", "start wf_1", "run run_1", "template orders"]);
});
