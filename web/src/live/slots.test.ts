import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { takeSlot } from "./slots";

/** Locks are those of a browser, as far as places need them. */
class Locks {
	private readonly held = new Set<string>();
	private readonly waiting: { name: string; signal: AbortSignal; go: () => void }[] = [];
	async request(name: string, { signal }: { signal: AbortSignal }, work: () => Promise<void>) {
		if (this.held.has(name)) {
			await new Promise<void>((go, stop) => {
				const entry = { name, signal, go };
				this.waiting.push(entry);
				signal.addEventListener("abort", () => {
					this.waiting.splice(this.waiting.indexOf(entry), 1);
					stop(signal.reason);
				});
			});
		}
		this.held.add(name);
		await work();
		this.held.delete(name);
		this.waiting.find((one) => one.name === name)?.go();
	}
	get size() {
		return this.held.size;
	}
}

let locks: Locks;

beforeEach(() => {
	locks = new Locks();
	vi.stubGlobal("navigator", { locks });
});

afterEach(() => {
	vi.unstubAllGlobals();
});

const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

test("four tabs follow events, and the fifth when one of them leaves", async () => {
	const four = await Promise.all([1, 2, 3, 4].map(() => takeSlot(new AbortController().signal)));
	await settle();
	expect(locks.size).toBe(4);
	let late: (() => void) | undefined;
	void takeSlot(new AbortController().signal).then((free) => {
		late = free;
	});
	await settle();
	expect(late).toBeUndefined();
	four[2]?.();
	await settle();
	expect(late).toBeDefined();
	four[0]?.();
	late?.();
	await settle();
	expect(locks.size).toBe(2);
});

test("who gives up waiting takes no place", async () => {
	const four = await Promise.all([1, 2, 3, 4].map(() => takeSlot(new AbortController().signal)));
	const abort = new AbortController();
	const fifth = takeSlot(abort.signal);
	abort.abort(new Error("hidden"));
	await expect(fifth).rejects.toThrow("hidden");
	for (const free of four) free();
	await settle();
	expect(locks.size).toBe(0);
});

test("without locks everybody has a place", async () => {
	vi.stubGlobal("navigator", {});
	await Promise.all([1, 2, 3, 4, 5, 6].map(() => takeSlot(new AbortController().signal)));
});
