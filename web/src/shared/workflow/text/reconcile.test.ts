import { describe, expect, it } from "vitest";
import {
	addStep,
	addTrigger,
	change,
	changeAt,
	connect,
	type Doc,
	duplicate,
	type Edit,
	emptyDoc,
	move,
	moveInto,
	placeNodes,
	remove,
	rename,
	unwrap,
	wrap,
} from "../model";
import { contentOf, parse } from "./content";
import { reconcile } from "./reconcile";

const source = `# Orders that are worth a look.
name: Big order   # shown in lists

triggers:
  - {id: hook, type: webhook, verify: {scheme: github, secret: "\${{ secrets.gh }}"}}   # from the shop
  - id: nightly
    type: schedule
    cron: '0 3 * * *'

# What happens.
steps:
  # The order itself.
  - id: get
    name: "Get the order"   # with its lines
    uses: http.request
    with:
      url: "https://shop.example/orders/\${{ trigger.payload.id }}"
      headers: {accept: application/json, x-a: "1"}
      # nothing else

  # Only large ones.
  - id: approve
    needs: [get]
    if: steps.get.output.body.total > 100 # euros
    uses: flow.approval
    with: {message: "Order \${{ trigger.payload.id }}", timeout: 2d}

  - id: lines
    needs: [get]
    foreach: \${{ steps.get.output.body.lines }}
    parallel: 5
    steps:
    # each line
    - id: reserve
      uses: code.js
      with:
        code: |
          // reserve it
          # not a comment

          return 1
    - {id: told, uses: log.write, with: {message: done}}

  - id: notify
    needs: [approve, lines]   # both
    uses: email.send
    with:
      to: "\${{ trigger.payload.email }}"
      subject: Order ready
# The end.
`;

function docOf(text: string): Doc {
	const read = parse(text);
	if (!("content" in read)) throw new Error(JSON.stringify(read.errors));
	return { ...emptyDoc, ...read.content, layout: read.content.layout ?? {} };
}

const doc = docOf(source);

/** A line-by-line diff of two texts. */
function changes(before: string, after: string): string[] {
	const a = before.split("\n");
	const b = after.split("\n");
	const width = b.length + 1;
	const length = new Uint16Array((a.length + 1) * width);
	for (let i = a.length - 1; i >= 0; i--) {
		for (let j = b.length - 1; j >= 0; j--) {
			const at = (n: number, m: number) => length[n * width + m] as number;
			length[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
		}
	}
	const out: string[] = [];
	let i = 0;
	let j = 0;
	while (i < a.length || j < b.length) {
		if (i < a.length && j < b.length && a[i] === b[j]) {
			i++;
			j++;
		} else if (
			j < b.length &&
			(i >= a.length || (length[i * width + j + 1] as number) >= (length[(i + 1) * width + j] as number))
		) {
			out.push(`+${b[j++]}`);
		} else {
			out.push(`-${a[i++]}`);
		}
	}
	return out;
}

function edited(edit: Edit, from = source): string[] {
	expect(edit.rejected).toBeUndefined();
	const text = reconcile(from, contentOf(edit.doc));
	expect(docOf(text).steps).toEqual(edit.doc.steps);
	expect(docOf(text).triggers).toEqual(edit.doc.triggers);
	return changes(from, text);
}

describe("reconcile", () => {
	it("returns the same text if nothing changed", () => {
		expect(reconcile(source, contentOf(doc))).toBe(source);
	});

	it("changes a field and keeps the comment next to it", () => {
		expect(edited(change(doc, "get", "/name", "Get it"))).toEqual([
			'+    name: "Get it"   # with its lines',
			'-    name: "Get the order"   # with its lines',
		]);
		expect(edited(change(doc, "approve", "/if", "steps.get.output.total > 5"))).toEqual([
			"+    if: steps.get.output.total > 5 # euros",
			"-    if: steps.get.output.body.total > 100 # euros",
		]);
		expect(edited(change(doc, "get", "/with/headers/accept", "text/html, a"))).toEqual([
			'+      headers: {accept: "text/html, a", x-a: "1"}',
			'-      headers: {accept: application/json, x-a: "1"}',
		]);
	});

	it("adds and removes fields", () => {
		expect(edited(change(doc, "approve", "/retry", { max_attempts: 3 }))).toEqual([
			"+    retry:",
			"+      max_attempts: 3",
		]);
		expect(edited(change(doc, "get", "/with/method", "POST"))).toEqual(["+      method: POST"]);
		expect(edited(change(doc, "get", "/name", undefined))).toEqual(['-    name: "Get the order"   # with its lines']);
		expect(edited(change(doc, "told", "/with/level", "debug"))).toEqual([
			"+    - {id: told, uses: log.write, with: {message: done, level: debug}}",
			"-    - {id: told, uses: log.write, with: {message: done}}",
		]);
		expect(edited(change(doc, "approve", "/with/message", undefined))).toEqual([
			"+    with: {timeout: 2d}",
			'-    with: {message: "Order ${{ trigger.payload.id }}", timeout: 2d}',
		]);
	});

	it("adds a step on an implicit edge without changing others", () => {
		const plain = "steps:\n  - id: a\n    uses: x.y # one\n  - id: b   # two\n    uses: x.y\n";
		const edit = addStep(docOf(plain), { id: "more", uses: "log.write" }, { at: "edge", from: "a", to: "b" });
		expect(edited(edit, plain)).toEqual(["+  - id: more", "+    uses: log.write"]);
	});

	it("separates new steps like the others", () => {
		const edit = addStep(doc, { id: "more", uses: "log.write" }, { at: "branch", step: "get" });
		expect(edited(edit)).toEqual(["+  - id: more", "+    needs: [get]", "+    uses: log.write", "+"]);
	});

	it("removes a step with its comment", () => {
		expect(edited(remove(doc, ["approve"]))).toEqual([
			"-  # Only large ones.",
			"-  - id: approve",
			"-    needs: [get]",
			"-    if: steps.get.output.body.total > 100 # euros",
			"-    uses: flow.approval",
			'-    with: {message: "Order ${{ trigger.payload.id }}", timeout: 2d}',
			"-",
			"+    needs: [get, lines]   # both",
			"-    needs: [approve, lines]   # both",
		]);
	});

	it("renames a step in place", () => {
		expect(edited(rename(doc, "approve", "ask"))).toEqual([
			"+  - id: ask",
			"-  - id: approve",
			"+    needs: [ask, lines]   # both",
			"-    needs: [approve, lines]   # both",
		]);
	});

	it("does not mistake a step moved out of a loop for a removed one", () => {
		const text = [
			"steps:",
			"  - id: gone # one",
			"    uses: log.write",
			"  - id: each",
			"    foreach: x",
			"    steps:",
			"      - id: inner # two",
			"        uses: log.write",
			"",
		].join("\n");
		const out = unwrap(remove(docOf(text), ["gone"]).doc, "each");
		expect(reconcile(text, contentOf(out.doc))).toBe("steps:\n  - id: inner # two\n    uses: log.write\n");
	});

	it("keeps the bytes of a step that moves into an empty loop", () => {
		const text =
			"steps:\n  - id: a # one\n    # two\n    uses: x.y\n  - id: each\n    foreach: x\n    steps: [] # three\n";
		expect(reconcile(text, contentOf(moveInto(docOf(text), ["a"], "each").doc))).toBe(
			"steps:\n  - id: each\n    foreach: x\n    steps: # three\n      - id: a # one\n        # two\n        uses: x.y\n",
		);
	});

	it("connects by changing one line", () => {
		expect(edited(connect(doc, "approve", "lines"))).toEqual(["+    needs: [get, approve]", "-    needs: [get]"]);
	});

	it("keeps the bytes of steps that move into a block and out of it", () => {
		const wrapped = wrap(doc, ["notify"], { foreach: "[1]" });
		expect(edited(wrapped)).toEqual([
			"+  - id: each",
			"+    needs: [approve, lines]",
			'+    foreach: "[1]"',
			"+    steps:",
			"+      - id: notify",
			"+        uses: email.send",
			"+        with:",
			'+          to: "${{ trigger.payload.email }}"',
			"+          subject: Order ready",
			"-  - id: notify",
			"-    needs: [approve, lines]   # both",
			"-    uses: email.send",
			"-    with:",
			'-      to: "${{ trigger.payload.email }}"',
			"-      subject: Order ready",
		]);
		const free = edited(unwrap(doc, "lines"));
		expect(free).toContain("+  # each line");
		expect(free).toContain("+        # not a comment");
		expect(free.filter((line) => /approval|Get the order|The end/.test(line))).toEqual([]);
	});

	it("changes triggers, settings and positions", () => {
		expect(edited(addTrigger(doc, { type: "manual" }))).toEqual(["+  - id: manual", "+    type: manual"]);
		expect(edited(remove(doc, ["@nightly"]))).toEqual([
			"-  - id: nightly",
			"-    type: schedule",
			"-    cron: '0 3 * * *'",
		]);
		expect(edited(changeAt(doc, "/settings/timeout", "5m"))).toEqual(["+settings:", "+  timeout: 5m"]);
		expect(edited(placeNodes(doc, { get: [8, 8] }))).toEqual([]);
		const placed = `${source}layout: {get: [0, 0]}\n`;
		expect(edited(placeNodes(docOf(placed), { approve: [8, 8] }), placed)).toEqual([
			"+layout: {get: [0, 0], approve: [8, 8]}",
			"-layout: {get: [0, 0]}",
		]);
	});

	it("keeps CRLF line breaks and a missing final one", () => {
		const text = "steps:\r\n  - id: a\r\n    uses: x.y # c\r\n  - id: b";
		const edit = addStep(docOf(text), { id: "more" }, { at: "after", step: "b" });
		expect(reconcile(text, contentOf(edit.doc))).toBe(
			"steps:\r\n  - id: a\r\n    uses: x.y # c\r\n  - id: b\r\n  - id: more\r\n",
		);
	});

	it("fills an empty list and empties it again", () => {
		const text = "name: x # y\nsteps: [] # none\n";
		const one = reconcile(text, contentOf(addStep(docOf(text), { id: "more" }, { at: "end", block: null }).doc));
		expect(one).toBe("name: x # y\nsteps: # none\n  - id: more\n");
		expect(reconcile(one, contentOf(remove(docOf(one), ["more"]).doc))).toBe("name: x # y\nsteps: [] # none\n");
	});

	it("keeps comments in flow collections, and a block scalar at the end", () => {
		const list = "steps: [\n  {id: a}, # one\n  {id: b}, # two\n] # all\n";
		const named = reconcile(list, contentOf(change(docOf(list), "b", "/name", "B").doc));
		expect(named).toBe("steps: [\n  {id: a}, # one\n  {id: b, name: B}, # two\n] # all\n");
		const without = reconcile(list, contentOf(remove(docOf(list), ["a"]).doc));
		expect(without).toBe("steps: [\n  {id: b}, # two\n] # all\n");
		const longer = reconcile(list, contentOf(addStep(docOf(list), { id: "c" }, { at: "after", step: "a" }).doc));
		expect(longer).toBe("steps: [\n  {id: a}, # one\n  {id: c},\n  {id: b}, # two\n] # all\n");
		const open = "steps:\n  - id: a\n    with:\n      m: |\n        x";
		const more = addStep(docOf(open), { id: "c" }, { at: "after", step: "a" });
		expect(docOf(reconcile(open, contentOf(more.doc))).steps).toEqual(more.doc.steps);
	});

	it("rewrites a text that cannot be parsed", () => {
		expect(reconcile("steps: [", contentOf(docOf("steps: [{id: a}]")))).toBe("steps:\n  - id: a\n");
		expect(reconcile("- 1\n", contentOf(docOf("steps: [{id: a}]"), { name: "x" }))).toBe(
			"name: x\nsteps:\n  - id: a\n",
		);
	});

	it("moves and copies", () => {
		expect(edited(moveInto(doc, ["notify"], "lines"))).toContain("+    - id: notify");
		expect(edited(duplicate(doc, ["reserve"]))).toContain("+    - id: reserve_2");
		expect(edited(move(doc, ["approve"], { at: "after", step: "notify" }))).toContain("+  # Only large ones.");
	});
});
