import { describe, expect, test } from "vitest";
import { ApiError } from "@/api/error";
import { type Doc, emptyDoc } from "@/shared/workflow/model";
import { definitionError, fieldSentence, fieldTitle, problemSentence, type Titles } from "./problem-words";

const doc: Doc = {
	...emptyDoc,
	triggers: [{ id: "hook", type: "webhook" }],
	steps: [
		{ id: "first", uses: "data.set" },
		{
			id: "each",
			foreach: "trigger.payload.lines",
			steps: [{ id: "note", name: "Notify", uses: "log.write", with: {} }],
		},
	],
};

const titles: Titles = {
	format: {
		properties: { settings: { properties: { timeout: { title: "Time limit" } } } },
		$defs: {
			step: { properties: { foreach: { title: "For each" }, retry: { $ref: "#/$defs/retry" } } },
			retry: { title: "Retry", properties: { max_attempts: {} } },
			trigger: { properties: { methods: { title: "Methods" } } },
		},
	},
	inputOf: (uses) =>
		uses === "log.write"
			? {
					properties: {
						message: { title: "Message" },
						people: { title: "People", items: { properties: { email: { title: "E-mail address" } } } },
					},
				}
			: undefined,
};

describe("the title of a field", () => {
	test("comes from the schema of the action or of the format, or from the name", () => {
		expect(fieldTitle(doc, titles, "/steps/1/steps/0/with/message")).toBe("Message");
		expect(fieldTitle(doc, titles, "/steps/1/steps/0/with/people/2/email")).toBe("E-mail address");
		expect(fieldTitle(doc, titles, "/steps/1/steps/0/with/people/2")).toBe("People 3");
		expect(fieldTitle(doc, titles, "/steps/0/with/values")).toBe("Values");
		expect(fieldTitle(doc, titles, "/steps/0/retry/max_attempts")).toBe("Max attempts");
		expect(fieldTitle(doc, titles, "/triggers/0/methods")).toBe("Methods");
		expect(fieldTitle(doc, titles, "/settings/timeout")).toBe("Time limit");
		expect(fieldTitle(doc, titles, "/steps/0")).toBe("");
	});
});

describe("a problem in words", () => {
	const said = (pointer: string, message: string) => problemSentence(doc, titles, { pointer, message });

	test("names the field and the step that people see", () => {
		expect(said("/definition/steps/1/steps/0/with/message", "is required")).toBe("Message is required in step Notify.");
		expect(said("/steps/0/uses", 'there is no action "data.se"')).toBe(
			'Uses in step first: there is no action "data.se".',
		);
		expect(said("/triggers/0/methods", "must name at least one method")).toBe(
			"Methods must name at least one method in trigger Webhook.",
		);
		expect(said("/settings/timeout", "must be at most 24h")).toBe("Time limit must be at most 24h.");
		expect(said("/steps/0", "is not used")).toBe("Step first is not used.");
	});

	test("is a sentence about a field where the step is shown anyway", () => {
		expect(fieldSentence("Message", "is required")).toBe("Message is required.");
		expect(fieldSentence("Input", "unexpected end")).toBe("Input: unexpected end.");
		expect(fieldSentence("", "the steps wait for each other")).toBe("The steps wait for each other.");
	});

	test("replaces the pointers of an error of the server", () => {
		const field = (at: string) => ({ pointer: `/definition/steps/1/steps/0/with/${at}`, message: "is required" });
		const one = definitionError(doc, titles, new ApiError(422, "workflow_invalid", "/definition…", [field("message")]));
		expect([one.message, one.fields]).toEqual(["Message is required in step Notify.", []]);
		const two = definitionError(doc, titles, new ApiError(422, "x", "…", [field("message"), field("people")], "req_1"));
		expect(two.message).toBe("The workflow has 2 problems.");
		expect(two.fields.map(({ pointer, message }) => pointer + message)).toEqual([
			"Message is required in step Notify.",
			"People is required in step Notify.",
		]);
		const other = new ApiError(409, "workflow_paused", "it is paused");
		expect(definitionError(doc, titles, other)).toBe(other);
	});
});
