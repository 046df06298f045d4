import { expect, test } from "vitest";
import { contains, type Found, narrow, nothing } from "./narrow";

test.each([
	["Sync orders", "ORD sync", true],
	["Sync orders", "orders invoice", false],
	["Größe prüfen", "GRÖ", true],
	["Cafe\u0301", "café", true],
	["anything", "", true],
	["100% sure", "100%", true],
	["100 sure", "%", false],
])("%s contains %s: %s", (text, query, expected) => {
	expect(contains(text, query)).toBe(expected);
});

test("only results that match the new query are kept", () => {
	const found = {
		workflows: [
			{ id: "wf_01a", name: "Sync orders" },
			{ id: "wf_01b", name: "Invoices" },
		],
		runs: [{ id: "run_01a" }, { id: "run_02b" }],
		templates: [{ name: "hello", title: "Say hello" }],
	} as Found;
	const names = (query: string) => {
		const { workflows, runs, templates } = narrow(found, query);
		return [...workflows.map((one) => one.name), ...runs.map((one) => one.id), ...templates.map((one) => one.title)];
	};
	expect(names("orders")).toEqual(["Sync orders"]);
	expect(names("WF_01B")).toEqual(["Invoices"]);
	expect(names("run_02")).toEqual(["run_02b"]);
	expect(names("HELLO say")).toEqual(["Say hello"]);
	expect(narrow(found, "none of these")).toEqual(nothing);
});
