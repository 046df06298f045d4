import { describe, expect, test } from "vitest";
import { words } from "@/shared/listed/field";
import type { JsonSchema } from "@/shared/listed/schema";
import { firstEmpty, planField, planForm, planMembers } from "./plan";

const request: JsonSchema = {
	type: "object",
	required: ["url"],
	properties: {
		body: { description: "The body." },
		fail_on: { type: "string", default: ">=400" },
		follow_redirects: { type: "boolean", default: true },
		headers: { type: "object" },
		method: { type: "string", enum: ["GET", "POST"], default: "GET" },
		url: { type: "string", description: "Where to." },
	},
};

describe("a form", () => {
	test("shows required fields first", () => {
		const plan = planForm(request, request);
		expect(plan.main.map((field) => field.name)).toEqual(["url"]);
		expect(plan.more.map((field) => [field.name, field.kind])).toEqual([
			["body", "any"],
			["fail_on", "text"],
			["follow_redirects", "boolean"],
			["headers", "map"],
			["method", "choice"],
		]);
	});

	test("shows everything in a short form without required fields", () => {
		const wait: JsonSchema = { type: "object", properties: { for: { type: "string" }, until: { type: "string" } } };
		expect(planForm(wait, wait)).toMatchObject({ main: [{ name: "for" }, { name: "until" }], more: [] });
	});

	test("finds the first empty required field", () => {
		const { main, more } = planForm(request, request);
		expect(firstEmpty([...main, ...more], {})).toBe("url");
		expect(firstEmpty([...main, ...more], { url: "https://a.example" })).toBeUndefined();
	});
});

describe("a field", () => {
	const field = (name: string, schema: JsonSchema) => planField(name, schema, schema, false);

	test.each<[string, JsonSchema, string]>([
		["code", { type: "string" }, "code"],
		["script", { type: "string", contentMediaType: "text/javascript" }, "code"],
		["message", { type: "string" }, "lines"],
		["workflow_id", { type: "string" }, "workflow"],
		["port", { type: "integer" }, "number"],
		["value", { type: ["string", "number", "boolean"] }, "text"],
		["value", { type: ["string", "null"] }, "text"],
		["value", { type: ["object", "string"] }, "any"],
		["notify", { type: "object", properties: { url: {} } }, "object"],
		["events", { type: "array", items: { enum: ["a", "b"] } }, "choices"],
		["to", { type: "array", items: { type: "string" } }, "list"],
		["either", { oneOf: [{ type: "string" }, { type: "object" }] }, "variants"],
		["anything", {}, "any"],
		["attachment", { format: "file" }, "file"],
		["channel", { type: "string", "x-options": "list_channels" }, "listed"],
		["release", { type: "integer", "x-options": "list_releases" }, "listed"],
		["labels", { type: "array", items: { type: "string", "x-options": "list_labels" } }, "list"],
		["row", { type: "object", "x-fields": "list_columns" }, "fields"],
	])("%s of %j is rendered as %s", (name, schema, kind) => {
		expect(field(name, schema).kind).toBe(kind);
	});

	test("takes no expressions if its schema says so", () => {
		expect(field("query", { type: "string", "x-literal": "use variables" }).literal).toBe(true);
		expect(field("query", { type: "string" }).literal).toBeUndefined();
	});

	test("labels and describes its options", () => {
		const plan = field("on_limit", {
			enum: ["queue", "cancel_running"],
			enumDescriptions: ["It waits.", "The oldest goes."],
		});
		expect(plan.options).toEqual([
			{ value: "queue", label: "Queue", hint: "It waits." },
			{ value: "cancel_running", label: "Cancel running", hint: "The oldest goes." },
		]);
		expect(field("event", { enum: ["run.failed", "GET"] }).options?.map((option) => option.label)).toEqual([
			"run.failed",
			"GET",
		]);
	});

	test("resolves references, including those next to an expression", () => {
		const root: JsonSchema = {
			$defs: { duration: { type: "string", examples: ["90s"], title: "Length" }, expression: { type: "string" } },
			properties: {
				every: { $ref: "#/$defs/duration", title: "Every" },
				limit: { default: 1, if: { $ref: "#/$defs/expression" }, else: { type: "integer", minimum: 1 } },
			},
		};
		expect(planMembers(root, root)).toMatchObject([
			{ name: "every", label: "Every", kind: "text", placeholder: "such as 90s" },
			{ name: "limit", kind: "number", whole: true, minimum: 1, default: 1 },
		]);
	});
});

test("a constant field decides which fields are shown and required", () => {
	const verify: JsonSchema = {
		type: "object",
		required: ["scheme"],
		properties: { scheme: { enum: ["github", "none"] }, secret: { type: "string" }, header: { type: "string" } },
		allOf: [
			{
				if: { properties: { scheme: { const: "github" } } },
				// biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
				then: { additionalProperties: false, required: ["secret"], properties: { scheme: true, secret: true } },
			},
			{
				if: { properties: { scheme: { const: "none" } } },
				// biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
				then: { additionalProperties: false, properties: { scheme: true } },
			},
		],
	};
	const names = (value: unknown) =>
		planMembers(verify, verify, value).map((field) => `${field.name}${field.required ? "!" : ""}`);
	expect(names({ scheme: "github" })).toEqual(["scheme!", "secret!"]);
	expect(names({ scheme: "none" })).toEqual(["scheme!"]);
	expect(names({})).toEqual(["scheme!", "secret", "header"]);
});

test("field names become labels", () => {
	expect(["url", "fail_on", "workflow_id", "max_attempts"].map(words)).toEqual([
		"URL",
		"Fail on",
		"Workflow ID",
		"Max attempts",
	]);
});
