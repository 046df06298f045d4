import { expect, it } from "vitest";
import { graph } from "../graph";
import { equal } from "../json";
import { resolve } from "../level";
import { stepOf } from "../need";
import { Random, randomSteps } from "../random.test-data";
import { find, idsOf, listOf, walk } from "../tree";
import { type Doc, emptyDoc } from "../types";
import { randomOperation } from "./operations.test-data";

/** The needs of every step, computed independently of the model. */
function needsOf(doc: Doc): Map<string, string[]> {
	const out = new Map<string, string[]>();
	const read = (steps: Doc["steps"]): void => {
		for (const [i, step] of steps.entries()) {
			const before = steps[i - 1];
			out.set(step.id, [...(step.needs ?? (before ? [before.id] : []))].sort());
			read(step.steps ?? []);
		}
	};
	read(doc.steps);
	return out;
}

it("operations do not change the graph of other steps", { timeout: 60_000 }, () => {
	const done = new Map<string, number>();
	for (let seed = 1; seed <= 150; seed++) {
		const random = new Random(seed);
		let doc: Doc = { ...emptyDoc, steps: randomSteps(random, 2 + random.below(12)) };
		for (let n = 0; n < 12; n++) {
			const frozen = JSON.stringify(doc);
			const { name, edit, touched } = randomOperation(random, doc);
			const label = `${name}, seed ${seed}, operation ${n}`;
			expect(JSON.stringify(doc), `${label}: changed in place`).toBe(frozen);
			if (edit.rejected !== undefined) {
				expect(edit.doc, label).toBe(doc);
				continue;
			}
			done.set(name, (done.get(name) ?? 0) + 1);
			const before = needsOf(doc);
			const after = needsOf(edit.doc);
			for (const [id, needs] of after) {
				const had = before.get(id);
				if (had && !touched.has(id)) expect(needs, `${label}: needs of ${id}`).toEqual(had);
			}
			check(edit.doc, label);
			untouched(doc, edit.doc, touched, label);
			doc = edit.doc;
		}
	}
	expect(done.size).toBeGreaterThanOrEqual(14);
});

function check(doc: Doc, label: string): void {
	const ids = idsOf(doc.steps);
	expect(new Set(ids).size, `${label}: ids`).toBe(ids.length);
	expect(graph(doc).cycles, `${label}: cycles`).toEqual([]);
	for (const { step, block } of walk(doc.steps)) {
		const list = (listOf(doc.steps, block) ?? []).map((s) => s.id);
		for (const need of step.needs ?? []) expect(list, `${label}: ${step.id} needs`).toContain(stepOf(need));
	}
}

/**
 * A changed step has no redundant needs, except after duplicating and renaming. An
 * unchanged step is the same object.
 */
function untouched(before: Doc, after: Doc, touched: ReadonlySet<string>, label: string): void {
	for (const { step, block, index } of walk(after.steps)) {
		const was = find(before.steps, step.id)?.step;
		const same = was && was.needs === step.needs;
		const unwritten = resolve(listOf(after.steps, block) ?? [])
			.slice(0, index)
			.at(-1);
		if (step.needs && !same && !/^(rename|duplicate)/.test(label) && !equal(was?.needs, step.needs)) {
			expect(step.needs, `${label}: ${step.id}`).not.toEqual(unwritten ? [unwritten.step.id] : []);
		}
		if (was && same && !step.steps && !touched.has(step.id) && equal(was, step))
			expect(step, `${label}: ${step.id}`).toBe(was);
	}
}
