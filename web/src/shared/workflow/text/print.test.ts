import { describe, expect, it } from "vitest";
import type { Step } from "../model/types";
import { parse, print } from "./content";
import { locate, pointerAt } from "./locate";
import { document } from "./print";
import { readYaml } from "./yaml";

const example = `name: Big order
triggers:
  - id: hook
    type: webhook
settings:
  timeout: 1h
steps:
  - id: get
    name: Get the order
    uses: http.request
    with:
      url: https://shop.example/orders/\${{ trigger.payload.id }}
  - id: lines
    needs: [get]
    foreach: \${{ steps.get.output.body.lines }}
    steps:
      - id: reserve
        uses: code.js
        with:
          code: |
            const a = 1;

            return a;
          empty: {}
  - id: notify
    needs: [get, lines]
    uses: log.write
    with:
      message: "no"
`;

describe("print", () => {
	it("writes idiomatic YAML and reads it back", () => {
		const read = parse(example);
		if (!("content" in read)) throw new Error(JSON.stringify(read.errors));
		expect(print(read.content)).toBe(example);
		const shuffled = [...read.content.steps].map(
			(step) => Object.fromEntries(Object.entries(step).reverse()) as unknown as Step,
		);
		expect(print({ ...read.content, steps: shuffled })).toContain("  - id: get\n    name: Get the order\n    uses");
	});

	it("round-trips every value", () => {
		const texts = [
			"",
			" x",
			"x ",
			"a: b",
			"a #b",
			"#",
			"- a",
			"no",
			"1e3",
			"014",
			"1_000",
			"12:30",
			"2020-01-01",
			"~",
			"null",
			"<<",
		];
		texts.push(
			"a\nb",
			"a\nb\n",
			"a\n\n",
			"\n",
			" a\nb",
			"\ta\nb",
			"\u0085",
			"\u2028",
			"é",
			"😀",
			"'",
			'"',
			"\\",
			"a'b\"c",
			"{a}",
			"[",
			"a, b",
		);
		texts.push(
			"x".repeat(200),
			"tab\tin",
			"&a",
			"*a",
			"!a",
			"%a",
			"@a",
			"`a`",
			"|",
			">",
			"? a",
			": a",
			"a:",
			"---",
			"...",
			"\x07",
			"a\r\nb",
		);
		for (const text of texts) {
			const value = { [text]: text, list: [text, [text], { [text]: [text, { a: text }] }] };
			const out = document(value);
			const read = readYaml(out);
			expect("error" in read ? { out, ...read.error } : read.value).toEqual(value);
		}
	});
});

describe("positions", () => {
	it("converts pointers to positions and back", () => {
		const read = parse(example);
		if (!("content" in read)) throw new Error("invalid");
		expect(locate(read.parsed, "/steps/1/needs/0")).toMatchObject({ line: 14, column: 13 });
		expect(locate(read.parsed, "/steps/1/steps/0/with/nothing/here")).toMatchObject({ line: 20, column: 11 });
		const at = (line: number, column: number) => pointerAt(read.parsed, read.parsed.lines.offset(line, column));
		expect(at(14, 13)).toBe("/steps/1/needs/0");
		expect(at(12, 20)).toBe("/steps/0/with/url");
		expect(at(17, 12)).toBe("/steps/1/steps/0/id");
		expect(at(1, 1)).toBe("/name");
	});

	it("reports the position of mistakes", () => {
		const errors = (text: string) => {
			const read = parse(text);
			return "errors" in read ? read.errors.map((e) => [e.line, e.column, e.message]) : [];
		};
		expect(errors("steps:\n  - uses: x\n")).toEqual([[2, 5, "is required"]]);
		expect(errors("steps:\n  - id: a\n  - id: a\n")).toEqual([[3, 9, 'the id "a" is used by another one too']]);
		expect(errors("a: 1\nsteps: []\n")).toEqual([[1, 4, "a workflow has no a"]]);
		expect(errors("steps:\n  - id: a\n    needs: b\n")).toEqual([[3, 12, "must be a list of ids"]]);
		expect(errors("steps: [\n")).toHaveLength(1);
		expect(errors("- 1")).toEqual([[1, 1, "a workflow is an object with steps"]]);
		expect(errors("é: &a 1\n")).toEqual([
			[1, 4, "anchors are not allowed; text that starts with & has to be in quotes"],
		]);
	});
});
