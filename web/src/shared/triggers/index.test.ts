import { expect, test } from "vitest";
import { triggerTypeValues } from "@/api/values";
import { triggerIcon, triggerInfos, triggerName } from "./index";

test("every type of the contract is known, in its order", () => {
	expect(triggerInfos.map(({ type }) => type)).toEqual([...triggerTypeValues]);
});

test("a type that the dashboard does not know shows as its name", () => {
	expect(triggerName("pulse")).toBe("pulse");
	expect(triggerIcon("pulse")).toBe(triggerIcon("event"));
});
