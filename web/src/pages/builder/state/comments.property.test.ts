import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { changeAt, type Doc, type Edit, emptyDoc, equal, find, type Json, nodeAt } from "@/shared/workflow/model";
import { randomOperation } from "@/shared/workflow/model/edit/operations.test-data";
import { Random, randomSteps } from "@/shared/workflow/model/random.test-data";
import { contentOf, parse, print } from "@/shared/workflow/text/content";
import { pointerAt } from "@/shared/workflow/text/locate";
import { flow } from "@/shared/workflow/text/print";
import { Editor } from "./editor";
import { FakeServer, MemoryDrafts, workflow } from "./fake.test-data";

// Whatever the builder does to a workflow, a comment is removed only together with its step, trigger or field.

interface Comment {
	readonly text: string;
	/** The step, the trigger by `@id`, or null for the workflow. */
	node: string | null;
	/** The field next to the comment or below it; undefined for the whole node. */
	readonly member?: string;
}

/** Adds comments to most lines and records what each one belongs to. */
function comment(random: Random, source: string): { text: string; comments: Comment[] } {
	const read = parse(source);
	if (!("content" in read)) throw new Error(`${JSON.stringify(read.errors)}\n${source}`);
	const doc = { ...emptyDoc, ...read.content };
	const comments: Comment[] = [];
	const out: string[] = [];
	let offset = 0;
	let skip = -1;
	for (const line of source.trimEnd().split("\n")) {
		const key = /^( *)((?:- +)?)(\{?)(\w+):/.exec(line);
		const indent = /^ */.exec(line)?.[0] ?? "";
		// Lines of a block scalar are not YAML.
		const inText = skip >= 0 && (line.trim() === "" || indent.length > skip);
		if (!inText) skip = -1;
		if (/[|>][-+0-9]*$/.test(line) && !inText) skip = indent.length + (key?.[2]?.length ?? 0);
		if (key && !inText) {
			const begin = offset + indent.length + (key[2]?.length ?? 0) + (key[3]?.length ?? 0);
			const at = pointerAt(read.parsed, begin);
			const node = nodeAt(doc, at) ?? null;
			const [, whole] = /^((?:\/(?:steps|triggers)\/\d+)*)/.exec(at) ?? [];
			const member = at.slice((whole ?? "").length).split("/")[1];
			const own = at.slice((whole ?? "").length).split("/").length === 2;
			const entry = key[2] !== "";
			if (own && random.chance(0.4)) {
				const text = `# above ${comments.length}.`;
				comments.push({ text, node, member: entry ? undefined : member });
				out.push(indent + text);
			}
			const ends = /[|>][-+0-9]*$/.test(line) || /^[^"']*$|^[^"']*(["'])[^"']*\1\}?$/.test(line);
			if (own && ends && random.chance(0.4)) {
				const text = `# beside ${comments.length}.`;
				comments.push({ text, node, member: key[3] === "{" ? undefined : member });
				out.push(`${line} ${text}`);
				offset += line.length + 1;
				continue;
			}
		}
		out.push(line);
		offset += line.length + 1;
	}
	return { text: `${out.join("\n")}\n`, comments };
}

function stands(doc: Doc, { node, member }: Comment): boolean {
	const of = (value: object | undefined) =>
		value !== undefined && (member === undefined || value[member as keyof typeof value] !== undefined);
	if (node === null) return member === "name" || of(doc);
	if (node.startsWith("@")) return of(doc.triggers.find((one) => one.id === node.slice(1)));
	return of(find(doc.steps, node)?.step);
}

/** A flow collection on one line has no room for the comment of a step that is moved into it. */
function stayed(doc: Doc, { node }: Comment): boolean {
	return node === null || node.startsWith("@") || find(doc.steps, node)?.block === null;
}

/** The edits made in the side panel, besides the model's operations: field changes and renames. */
function panelOperation(random: Random, doc: Doc): Edit | ((editor: Editor) => Edit) {
	const ids = doc.steps.map((step) => step.id);
	const id = random.pick(ids);
	const trigger = random.pick(doc.triggers);
	const at = random.below(1_000_000);
	switch (random.below(6)) {
		case 0:
			return (editor) => {
				editor.setField(`/steps/${ids.indexOf(id)}/name`, `Named ${at}`);
				return editor.renameNode(id, `p${at}`);
			};
		case 1:
			return (editor) => editor.renameNode(`@${trigger.id}`, `t${at}`);
		case 2:
			return changeAt(doc, "/triggers/0/cron", `${at % 60} 4 * * *`);
		case 3:
			return changeAt(doc, "/settings/timeout", random.pick<Json | undefined>(["5m", "1h", undefined]));
		case 4:
			return changeAt(doc, `/steps/${ids.indexOf(id)}/uses`, random.pick(["data.set", "flow.stop"]));
		default:
			return changeAt(doc, "/settings/concurrency", { key: "${{ trigger.payload.id }}", limit: 1 + (at % 3) });
	}
}

const brackets = "lists in brackets";

const styles: Record<string, (doc: Doc) => string> = {
	ours: (doc) => print(contentOf(doc, { name: "Orders" })),
	"lists under their key": (doc) => stringify(plain(doc), { indentSeq: false, lineWidth: 0 }),
	"four spaces": (doc) => stringify(plain(doc), { indent: 4, lineWidth: 0 }),
	"steps in braces": ({ triggers, steps }) =>
		`name: Orders\ntriggers:\n${lines(triggers, "trigger", "  - ")}steps:\n${lines(steps, "step", "  - ")}`,
	[brackets]: ({ triggers, steps }) =>
		`name: Orders\ntriggers:\n${lines(triggers, "trigger", "  - ")}steps: [\n${lines(steps, "step", "  ", ",")}]\n`,
};

const plain = ({ triggers, steps, settings }: Doc) => ({ name: "Orders", triggers, steps, settings });
const lines = (list: readonly object[], kind: "step" | "trigger", before: string, after = "") =>
	list.map((one) => `${before}${flow(JSON.parse(JSON.stringify(one)), kind)}${after}\n`).join("");

describe.each(Object.keys(styles))("a text written as %s", (style) => {
	it("keeps the comments of every remaining line after any operation", { timeout: 60_000 }, () => {
		let checked = 0;
		for (let seed = 1; seed <= 5; seed++) {
			const random = new Random(seed);
			const doc: Doc = {
				...emptyDoc,
				triggers: [
					{ id: "nightly", type: "schedule", cron: "0 3 * * *" },
					{ id: "hook", type: "webhook" },
				],
				steps: randomSteps(random, 2 + random.below(7)),
				settings: style.includes("bra") ? {} : { timeout: "10m" },
			};
			const { text, comments } = comment(random, styles[style]?.(doc) ?? "");
			const { triggers, steps, settings } = JSON.parse(JSON.stringify(doc));
			const server = new FakeServer(workflow({ triggers, steps, settings, source: text }));
			const editor = new Editor(server.now, { server, drafts: new MemoryDrafts() });
			const done: string[] = [];
			let live = comments;
			for (let n = 0; n < 6; n++) {
				const before = editor.doc;
				const label = () => `seed ${seed}, ${done.join(", ")}\n${text}\n---\n${editor.text()}`;
				const renamed = step(random, editor, done);
				for (const one of live) one.node = renamed.get(one.node ?? "") ?? one.node;
				live = live.filter((one) => stands(editor.doc, one) && (style !== brackets || stayed(editor.doc, one)));
				const lost = live.filter((one) => !editor.text().includes(one.text)).map((one) => one.text);
				if (lost.length > 0) expect(lost, label()).toEqual([]);
				checked += live.length;
				const read = parse(editor.text());
				expect("content" in read && equal(read.content.steps, editor.doc.steps)).toBe(true);
				if (before.steps.length === 0) break;
			}
		}
		expect(checked).toBeGreaterThan(100);
	});
});

/** Performs a random edit and returns the nodes whose id changed. */
function step(random: Random, editor: Editor, done: string[]): ReadonlyMap<string, string> {
	if (random.chance(0.5) && editor.doc.triggers.length > 0 && editor.doc.steps.length > 0) {
		const operation = panelOperation(random, editor.doc);
		const edit = typeof operation === "function" ? operation(editor) : editor.apply(() => operation);
		done.push(`panel ${JSON.stringify([...(edit.renamed ?? [])])}`);
		return edit.renamed ?? new Map();
	}
	const { name, edit } = randomOperation(random, editor.doc);
	done.push(`${name}${edit.rejected ? " (rejected)" : ""}`);
	if (!edit.rejected) editor.apply(() => edit);
	return edit.rejected ? new Map() : (edit.renamed ?? new Map());
}
