import { describe, expect, it } from "vitest";
import { type Doc, emptyDoc, type Step } from "../model/types";
import { chainAt, complete } from "./complete";
import { functions } from "./functions";
import { lex } from "./lex";
import { bareRefs, templateRefs } from "./refs";
import { type Data, scopeAt } from "./scope";
import { bareSpan, spans } from "./template";

const kinds = (text: string) => lex(text).map((t) => `${t.kind}:${text.slice(t.from, t.to)}`);

describe("lex", () => {
	it("tokenizes like the server", () => {
		expect(kinds("steps.get?.output[0] ?? 1..3")).toEqual([
			...["name:steps", "operator:.", "name:get", "operator:?.", "name:output", "bracket:[", "number:0", "bracket:]"],
			...["operator:??", "number:1", "operator:..", "number:3"],
		]);
		expect(kinds("not a in b || x matches 'y' // c")).toEqual([
			...[
				"keyword:not",
				"name:a",
				"keyword:in",
				"name:b",
				"operator:||",
				"name:x",
				"keyword:matches",
				"string:'y'",
				"comment:// c",
			],
		]);
		expect(kinds("0x1F + 1_000 .5e-3 b'x' /* a */ é")).toEqual([
			...["number:0x1F", "operator:+", "number:1_000", "number:.5e-3", "string:b'x'", "comment:/* a */", "name:é"],
		]);
	});

	it("decodes strings", () => {
		expect(lex(String.raw`"a\"b\u{1F600}\x41\101"`)[0]?.value).toBe('a"b😀AA');
		expect(lex("`a``b`")[0]?.value).toBe("a`b");
	});

	it("reports errors and continues", () => {
		expect(lex("'abc\n+ x").map((t) => t.kind)).toEqual(["error", "operator", "name"]);
		expect(lex("/* x")[0]?.message).toBe("the comment is not closed: */ is missing");
		expect(lex("1abc @ x").map((t) => t.kind)).toEqual(["error", "error", "name"]);
		expect(lex(String.raw`"\q"`)[0]?.message).toBe(
			String.raw`the text has an escape that does not exist; write \\ for a backslash`,
		);
	});
});

describe("spans", () => {
	const inner = (text: string) => spans(text).map((span) => text.slice(span.from, span.to));
	it("finds the expressions of a text", () => {
		expect(inner("a ${{ x }} b ${{ {a: {b: '}}'}} }} $${{ no }}")).toEqual([" x ", " {a: {b: '}}'}} "]);
		expect(inner("${{ a // b }} c")).toEqual([" a // b "]);
		expect(inner("${{ /* }} */ a }}")).toEqual([" /* }} */ a "]);
	});
	it("reports an unclosed expression", () => {
		expect(spans("a ${{ 'x }}")).toMatchObject([{ unclosed: true, from: 5, to: 11 }]);
	});
	it("accepts a bare expression with or without ${{ }}", () => {
		expect(bareSpan("a > 1")).toMatchObject({ from: 0, to: 5 });
		expect(bareSpan(" ${{ a }}")).toMatchObject({ from: 4, to: 7 });
	});
});

describe("refs", () => {
	const names = (text: string) => bareRefs(text).map((ref) => `${ref.root}.${ref.name}`);
	it("finds step references in every notation", () => {
		expect(
			names("steps.a.output + steps['b'].x + steps?.c + steps?.[\"d\"] + secrets.k + vars[`v`] + links.e.page"),
		).toEqual([...["steps.a", "steps.b", "steps.c", "steps.d", "secrets.k", "vars.v", "links.e"]]);
	});
	it("ignores everything else", () => {
		expect(names("x.steps.a + {steps: 1}.b + 'steps.a' + steps[x] + let + // steps.z")).toEqual([]);
		expect(names("let steps = trigger.payload; steps.a")).toEqual([]);
		expect(templateRefs("steps.a ${{ steps.b }} steps.c").map((ref) => ref.name)).toEqual(["b"]);
	});
	it("finds references in maps and conditionals", () => {
		expect(names("x ? steps.a : steps.b")).toEqual(["steps.a", "steps.b"]);
		expect(names("{a: steps.a, b: steps.b}")).toEqual(["steps.a", "steps.b"]);
	});
});

describe("complete", () => {
	const step = (id: string, more: Partial<Step> = {}): Step => ({ id, uses: "http.request", ...more });
	const doc: Doc = {
		...emptyDoc,
		steps: [
			step("get", { name: "Get the order" }),
			step("side", { needs: [] }),
			{ id: "each", needs: ["get"], foreach: "steps.get.output.lines", steps: [step("inner"), step("after")] },
			{ id: "poll", needs: ["get"], repeat: { until: "true" }, steps: [step("ask")] },
		],
	};
	const data: Data = {
		trigger: { payload: { id: 7, customer: { name: "Ann" } }, headers: { "x-github-event": "push" } },
		outputs: { get: { status: 200, body: { total: 5, "a b": 1, in: 2 } } },
		schemas: { side: { type: "object", properties: { sum: { type: "number" } } } },
		item: { sku: "x" },
		vars: ["region"],
		secrets: ["token"],
	};
	/** Completes at the bar in the text. */
	const at = (text: string, where = "/steps/2/steps/1/with/url", form: "bare" | "template" = "template") => {
		const position = text.indexOf("|");
		return complete(text.replace("|", ""), position, scopeAt(doc, where, data), form);
	};
	const labels = (...args: Parameters<typeof at>) => at(...args).map((one) => one.label);

	it("offers only earlier steps", () => {
		expect(labels("${{ steps.| }}")).toEqual(["get", "inner"]);
		expect(labels("${{ steps.| }}", "/steps/1/with/url")).toEqual([]);
		expect(labels("steps.|", "/steps/3/repeat/until", "bare")).toEqual(["get", "ask"]);
		expect(labels("${{ s| }}")).toContain("steps");
	});

	it("offers the members of actual values", () => {
		expect(labels("${{ steps.get.output.| }}")).toEqual(["status", "body"]);
		expect(at("${{ steps.get.output.body.t| }}")).toMatchObject([
			{ label: "total", type: "number", value: 5, insert: "total" },
		]);
		expect(labels("${{ trigger.payload.customer.| }}")).toEqual(["name"]);
		expect(labels("${{ item.| }}")).toEqual(["sku"]);
		expect(labels("a ${{ secrets.| }} b ${{ vars.x }}")).toEqual(["token"]);
		expect(labels("${{ steps['get'].output?.| }}")).toEqual(["status", "body"]);
	});

	it("writes members that are not identifiers in brackets", () => {
		expect(at("${{ trigger.headers.x| }}")).toMatchObject([{ insert: '["x-github-event"]', from: 19, to: 21 }]);
		expect(at("${{ steps.get.output.body.| }}").map((one) => one.insert)).toEqual(["total", '["a b"]', '["in"]']);
		expect(at("${{ trigger.headers['x|'] }}")).toMatchObject([{ insert: '"x-github-event"' }]);
	});

	it("completes from the schema when there is no value", () => {
		const scope = scopeAt({ ...doc, steps: [step("side"), step("next")] }, "/steps/1/with", data);
		expect(complete("steps.side.output.", 18, scope, "bare")).toMatchObject([{ label: "sum", type: "number" }]);
	});

	it("offers nothing outside of expressions, in strings and comments, and after a value", () => {
		expect(labels("ste| ${{ x }}")).toEqual([]);
		expect(labels("${{ 'steps.|' }}")).toEqual([]);
		expect(labels("${{ a // steps.| }}")).toEqual([]);
		expect(labels("${{ trigger | }}")).toEqual([]);
		expect(labels("${{ upper(x).| }}")).toEqual([]);
	});

	it("respects where secrets, items and steps are available", () => {
		expect(labels("|", "/steps/2/foreach", "bare")).not.toContain("secrets");
		expect(labels("|", "/steps/2/foreach", "bare")).not.toContain("item");
		expect(labels("|", "/steps/2/steps/0/if", "bare")).toEqual(
			expect.arrayContaining(["item", "index", "secrets", "upper"]),
		);
		expect(labels("${{ t| }}", "/triggers/0/dedupe")[0]).toBe("trigger");
		expect(labels("${{ | }}", "/triggers/0/dedupe")).not.toContain("steps");
		expect(labels("prev|", "/steps/2/steps/0/if", "bare")).toEqual([]);
		expect(labels("prev|", "/steps/3/repeat/until", "bare")).toEqual(["previous"]);
		expect(labels("prev|", "/steps/3/steps/0/if", "bare")).toEqual(["previous"]);
		expect(labels("|", "/triggers/0/key", "bare")).toEqual(expect.arrayContaining(["item", "response"]));
	});

	it("offers every function with its signature and description", () => {
		for (const fn of functions) {
			const found = at(`\${{ ${fn.name}| }}`).find((one) => one.label === fn.name);
			expect(found).toMatchObject({ kind: "function", insert: `${fn.name}(`, doc: fn.doc });
			expect(fn.name + found?.detail).toBe(fn.signature);
		}
		expect(labels("${{ 1 + h| }}")).toEqual(expect.arrayContaining(["hash", "hmac", "htmlFind"]));
	});

	it("offers random values only in steps", () => {
		expect(labels("${{ uu| }}")).toEqual(["uuid"]);
		expect(labels("${{ uu| }}", "/triggers/0/dedupe")).toEqual([]);
		expect(labels("${{ uu| }}", "/settings/concurrency/key")).toEqual([]);
	});

	it("finds the chain at the cursor", () => {
		expect(chainAt("${{ steps.get.output[0].x }}", 15, "template")).toMatchObject({
			root: "steps",
			keys: ["get", "output"],
		});
		expect(chainAt("${{ steps.get.output[0].x }}", 24, "template")).toMatchObject({ keys: ["get", "output", 0, "x"] });
		expect(chainAt("1 + 2", 0, "bare")).toBeUndefined();
	});
});
