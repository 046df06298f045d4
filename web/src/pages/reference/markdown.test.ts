import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { type Block, type Inline, inline, parse } from "./markdown";

const text = (value: string): Inline => ({ kind: "text", text: value });
const code = (value: string): Inline => ({ kind: "code", text: value });

test("parses inline code, bold text and links", () => {
	expect(inline("Send `q` **now**, see [the docs](https://example.com/a?b#c).")).toEqual([
		text("Send "),
		code("q"),
		text(" "),
		{ kind: "strong", text: "now" },
		text(", see "),
		{ kind: "link", text: "the docs", href: "https://example.com/a?b#c" },
		text("."),
	]);
	expect(inline("``a ` b`` and `**`")).toEqual([code("a ` b"), text(" and "), code("**")]);
	expect(inline("2 * 3 ** 4, a_b_c, `open")).toEqual([text("2 * 3 ** 4, a_b_c, `open")]);
	expect(inline("")).toEqual([]);
});

test.each(["javascript:alert`1`", "#tag/Hooks", "data:text/html,x", "//example.com"])("%s is not a link", (href) => {
	expect(inline(`[hook](${href})`)).toEqual([text("hook")]);
});

test("HTML is text", () => {
	expect(parse("<img src=x onerror=alert(1)>")).toEqual([
		{ kind: "paragraph", content: [text("<img src=x onerror=alert(1)>")] },
	]);
});

test("blocks need no blank line between them", () => {
	const blocks = parse('One\ntwo\n## Title ##\n- a\n  more\n- b\n```json\n{\n  "a": 1\n}\n```\nLast\n1. x\n2. y');
	expect(blocks).toEqual([
		{ kind: "paragraph", content: [text("One two")] },
		{ kind: "heading", level: 2, content: [text("Title")] },
		{ kind: "list", ordered: false, items: [[text("a more")], [text("b")]] },
		{ kind: "code", text: '{\n  "a": 1\n}' },
		{ kind: "paragraph", content: [text("Last")] },
		{ kind: "list", ordered: true, items: [[text("x")], [text("y")]] },
	]);
});

test("an unclosed fence extends to the end", () => {
	expect(parse("```\n## no title\n| no | table |")).toEqual([{ kind: "code", text: "## no title\n| no | table |" }]);
});

test("a table has a cell for every column", () => {
	const blocks = parse("Text\n\n| a | `b|c` |\n|---|:--:|\n| 1 | x \\| y |\n| 2 |\n| | 3 | 4 |\n\nafter | that");
	expect(blocks).toEqual([
		{ kind: "paragraph", content: [text("Text")] },
		{
			kind: "table",
			head: [[text("a")], [code("b|c")]],
			rows: [
				[[text("1")], [text("x | y")]],
				[[text("2")], []],
				[[], [text("3")]],
			],
		},
		{ kind: "paragraph", content: [text("after | that")] },
	]);
});

test("near misses of block syntax are paragraphs", () => {
	for (const line of ["#no heading", "-no item", "a | b", "1.5 seconds", "**bold** start"])
		expect(parse(line).map((block) => block.kind)).toEqual(["paragraph"]);
});

test("renders the API document without leftover markup", () => {
	const document = parseYaml(readFileSync(new URL("../../../../openapi/openapi.yaml", import.meta.url), "utf8"));
	const kinds = new Set<string>();
	let count = 0;
	const check = (block: Block) => {
		kinds.add(block.kind);
		if (block.kind === "code") return;
		const parts =
			block.kind === "list"
				? block.items.flat()
				: block.kind === "table"
					? [block.head, ...block.rows].flat(2)
					: block.content;
		for (const part of parts) {
			if (part.kind === "code") continue;
			expect(part.text).not.toMatch(/`|\*\*|\]\(|^#|^- |^\||\|$/);
		}
	};
	const walk = (value: unknown, key?: string) => {
		if (typeof value === "string" && key === "description") {
			count += 1;
			for (const block of parse(value)) check(block);
		} else if (typeof value === "object" && value !== null)
			for (const [name, one] of Object.entries(value)) walk(one, name);
	};
	walk(document);
	expect(count).toBeGreaterThan(500);
	expect([...kinds].sort()).toEqual(["code", "heading", "list", "paragraph", "table"]);
});
