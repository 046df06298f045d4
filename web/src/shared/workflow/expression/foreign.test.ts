import { expect, it } from "vitest";
import { rewriteForeign } from "./foreign";

const own = (text: string) => text.replaceAll("§", "$");

it.each([
	["{{x}}", "§{{ x }}"],
	["Hello {{ trigger.payload.name }}, {{item.a}}!", "Hello §{{ trigger.payload.name }}, §{{ item.a }}!"],
	["={{ trigger.payload.id }}", "§{{ trigger.payload.id }}"],
	["§{{ a }} and {{ b }}", "§{{ a }} and §{{ b }}"],
])("writes expressions of other products as ours: %s", (text, want) => {
	expect(rewriteForeign(own(text))).toBe(own(want));
});

it.each(["", "plain", "§{{ x }}", "{ {x} }", "{{}}", "{{ }}", '§{{ {"a": {"b": 1}} }}', "§{{ {a: {{x}}} }}"])(
	"leaves everything else: %s",
	(text) => {
		expect(rewriteForeign(own(text))).toBeUndefined();
	},
);
