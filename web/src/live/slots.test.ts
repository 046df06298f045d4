import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { acquireSlot } from "./slots";

/** Locks is a minimal fake of the browser's Web Locks API. */
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

test("limits followers to four tabs, and admits a fifth when one leaves", async () => {
	const four = await Promise.all([1, 2, 3, 4].map(() => acquireSlot(new AbortController().signal)));
	await settle();
	expect(locks.size).toBe(4);
	let late: (() => void) | undefined;
	void acquireSlot(new AbortController().signal).then((free) => {
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

test("an aborted wait takes no slot", async () => {
	const four = await Promise.all([1, 2, 3, 4].map(() => acquireSlot(new AbortController().signal)));
	const abort = new AbortController();
	const fifth = acquireSlot(abort.signal);
	abort.abort(new Error("hidden"));
	await expect(fifth).rejects.toThrow("hidden");
	for (const free of four) free();
	await settle();
	expect(locks.size).toBe(0);
});

test("without Web Locks there is no limit", async () => {
	vi.stubGlobal("navigator", {});
	await Promise.all([1, 2, 3, 4, 5, 6].map(() => acquireSlot(new AbortController().signal)));
});
