import { expect, test } from "vitest";
import type { TemplateItem } from "./data";
import { categories, filterTemplates } from "./find";

const template = (name: string, category: string, uses: string[]): TemplateItem => ({
	name,
	title: name,
	description: `Does ${name}.`,
	category,
	first_run: false,
	triggers: ["schedule"],
	uses,
	inputs: [],
});

const all = [
	template("Watch a page", "Monitoring", ["http.request"]),
	template("Ask for approval", "People", ["flow.approval"]),
	template("Ping", "Monitoring", ["http.request"]),
];

const names = (found: TemplateItem[]) => found.map(({ name }) => name);

test("categories are listed once, in order", () => {
	expect(categories(all.toReversed())).toEqual(["Monitoring", "People"]);
	expect(categories(all.slice(1))).toEqual(["People", "Monitoring"]);
});

test("a template must contain every word", () => {
	expect(names(filterTemplates(all, "", "http PAGE"))).toEqual(["Watch a page"]);
	expect(names(filterTemplates(all, "", "  "))).toEqual(["Watch a page", "Ask for approval", "Ping"]);
	expect(filterTemplates(all, "", "nothing")).toEqual([]);
});

test("filters by category", () => {
	expect(names(filterTemplates(all, "Monitoring", "p"))).toEqual(["Watch a page", "Ping"]);
	expect(filterTemplates(all, "People", "ping")).toEqual([]);
});
