import type { Step } from "./types";

/** A small seeded generator, so that failures are reproducible. */
export class Random {
	constructor(private state: number) {}

	next(): number {
		this.state = (this.state + 0x6d2b79f5) | 0;
		let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	}

	below(n: number): number {
		return Math.floor(this.next() * n);
	}

	chance(p: number): boolean {
		return this.next() < p;
	}

	pick<T>(items: readonly T[]): T {
		return items[this.below(items.length)] as T;
	}
}

/** Random steps with branches, joins and blocks, without cycles. */
export function randomSteps(random: Random, count: number, prefix = "s", depth = 0): Step[] {
	const steps: Step[] = [];
	for (let i = 0; i < count; i++) {
		const id = `${prefix}${i}`;
		const before = steps.map((step) => step.id);
		let step: Step = { id, uses: "log.write", with: randomInput(random, before) };
		if (depth < 2 && random.chance(0.12)) {
			step = { id, foreach: "trigger.payload.list", steps: randomSteps(random, random.below(5), `${id}_`, depth + 1) };
		}
		if (random.chance(0.2)) step = { ...step, name: `Step ${i}` };
		if (random.chance(0.15) && before.length)
			step = { ...step, if: `steps.${random.pick(before)}.status == "succeeded"` };
		if (random.chance(0.4)) step = { ...step, needs: randomNeeds(random, before) };
		steps.push(step);
	}
	return steps;
}

function randomNeeds(random: Random, before: readonly string[]): string[] {
	if (before.length === 0 || random.chance(0.1)) return [];
	const needs = new Set<string>();
	for (let n = 1 + random.below(3); n > 0; n--) needs.add(random.pick(before));
	return [...needs];
}

function randomInput(random: Random, before: readonly string[]): { message: string } {
	if (before.length === 0) return { message: "hello" };
	return { message: `got \${{ steps.${random.pick(before)}.output }} and "steps.${random.pick(before)}"` };
}
