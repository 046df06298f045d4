import { expect, test } from "vitest";
import { triggerTypeValues } from "@/api/values";
import { triggerIcon, triggerInfos, triggerName } from "./index";

test("every type of the contract is known, in its order", () => {
	expect(triggerInfos.map(({ type }) => type)).toEqual([...triggerTypeValues]);
});

test("a type of a service shows as the words of its name", () => {
	expect(triggerName("google_sheets.new_row@2")).toBe("New row");
	expect(triggerIcon("gmail.new_message")).not.toBe(triggerIcon("slack.new_message"));
});

test("a type that the dashboard does not know shows as its name", () => {
	expect(triggerName("pulse")).toBe("pulse");
	expect(triggerIcon("pulse")).toBe(triggerIcon("event"));
});
