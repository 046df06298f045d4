import { expect, test } from "vitest";
import type { TemplateItem } from "./data";
import { categories, find } from "./find";

const template = (name: string, category: string, uses: string[]): TemplateItem => ({
	name,
	title: name,
	description: `Does ${name}.`,
	category,
	first_run: false,
	triggers: ["schedule"],
	uses,
});

const all = [
	template("Watch a page", "Monitoring", ["http.request"]),
	template("Ask for approval", "People", ["flow.approval"]),
	template("Ping", "Monitoring", ["http.request"]),
];

const names = (found: TemplateItem[]) => found.map(({ name }) => name);

test("categories are told once, in their order", () => {
	expect(categories(all.toReversed())).toEqual(["Monitoring", "People"]);
	expect(categories(all.slice(1))).toEqual(["People", "Monitoring"]);
});

test("a template has to have every word, wherever", () => {
	expect(names(find(all, "", "http PAGE"))).toEqual(["Watch a page"]);
	expect(names(find(all, "", "  "))).toEqual(["Watch a page", "Ask for approval", "Ping"]);
	expect(find(all, "", "nothing")).toEqual([]);
});

test("a category narrows what is found", () => {
	expect(names(find(all, "Monitoring", "p"))).toEqual(["Watch a page", "Ping"]);
	expect(find(all, "People", "ping")).toEqual([]);
});
