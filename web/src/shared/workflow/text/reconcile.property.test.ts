import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type Doc, emptyDoc, equal } from "../model";
import { randomOperation } from "../model/edit/operations.test-data";
import { Random, randomSteps } from "../model/random.test-data";
import { contentOf, parse, print } from "./content";
import { flow } from "./print";
import { reconcile } from "./reconcile";

function docOf(text: string): Doc {
	const read = parse(text);
	if (!("content" in read)) throw new Error(`${JSON.stringify(read.errors)}\n${text}`);
	return { ...emptyDoc, ...read.content, layout: {} };
}

/** Different ways to write the same document. */
const styles: Record<string, (doc: Doc, random: Random) => string> = {
	ours: (doc, random) => decorate(random, print(contentOf(doc))),
	json: (doc) => JSON.stringify({ name: "x", steps: doc.steps }, null, 2),
	"one line": (doc) => JSON.stringify({ steps: doc.steps }),
	"steps in braces": (doc, random) =>
		decorate(
			random,
			`steps:\n${doc.steps.map((step) => `  - ${flow(JSON.parse(JSON.stringify(step)), "step")}\n`).join("")}`,
		),
	"lists under their key": (doc, random) =>
		decorate(random, stringify({ steps: doc.steps }, { indentSeq: false, lineWidth: 0 })),
	"four spaces": (doc, random) =>
		decorate(random, stringify({ steps: doc.steps, settings: {} }, { indent: 4, lineWidth: 40 })),
	quoted: (doc) =>
		stringify({ steps: doc.steps }, { defaultStringType: "QUOTE_SINGLE", defaultKeyType: "QUOTE_DOUBLE" }),
	"dash alone": (doc) => print(contentOf(doc)).replace(/^( *)- id:/gm, "$1-\n$1  id:"),
};

describe.each(Object.keys(styles))("text written as %s", (style) => {
	it("matches the canvas after any operation, and keeps untouched steps byte for byte", {
		timeout: 60_000,
	}, () => {
		let kept = 0;
		for (let seed = 1; seed <= 10; seed++) {
			const random = new Random(seed);
			let now: Doc = { ...emptyDoc, steps: randomSteps(random, 2 + random.below(8)) };
			let text = styles[style]?.(now, random) ?? "";
			expect(equal(docOf(text).steps, now.steps)).toBe(true);
			for (let n = 0; n < 5; n++) {
				const { name, edit } = randomOperation(random, now);
				const next = reconcile(text, contentOf(edit.doc));
				const label = `${name}, seed ${seed}, operation ${n}\n${text}\n---\n${next}`;
				expect(equal(docOf(next).steps, edit.doc.steps), label).toBe(true);
				expect(equal(docOf(next).triggers, edit.doc.triggers), label).toBe(true);
				for (const step of now.steps) {
					const own = edit.doc.steps.includes(step) ? stretch(text, step.id) : "";
					if (own === "") continue;
					expect(next.includes(own), `${step.id} after ${label}\n${own}`).toBe(true);
					kept++;
				}
				text = next;
				now = edit.doc;
			}
		}
		if (!["json", "one line", "quoted", "dash alone"].includes(style)) expect(kept).toBeGreaterThan(60);
	});
});

/** The lines of a top-level step up to the next one; empty if it does not start with its id. */
function stretch(text: string, id: string): string {
	const lines = text.split("\n");
	const from = lines.findIndex((line) => new RegExp(`^ {0,4}- +(\\{)?id: ${id}\\b`).test(line));
	if (from < 0) return "";
	const column = (lines[from] as string).indexOf("-");
	let to = from + 1;
	while (to < lines.length && new RegExp(`^ {${column + 1},}\\S`).test(lines[to] as string)) to++;
	return lines.slice(from, to).join("\n");
}

/** Adds comments and blank lines in typical places. */
function decorate(random: Random, text: string): string {
	const out: string[] = ["# head"];
	for (const line of text.trimEnd().split("\n")) {
		const indent = /^ */.exec(line)?.[0] ?? "";
		if (/^ *- +\{?id/.test(line) && random.chance(0.4)) out.push("", `${indent}# before ${random.below(100)}`);
		const beside = /^ *(?:- +)?(?:id|uses|name|needs|steps|with):/.test(line) && random.chance(0.3);
		out.push(beside ? `${line}  # beside ${random.below(100)}` : line);
		if (/^ +uses:/.test(line) && random.chance(0.2)) out.push(`${indent}# inside`);
	}
	return `${out.join("\n")}\n# tail\n`;
}
