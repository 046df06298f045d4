/** A value with watchers: what changes in one place is drawn in many. */
export class Store<T extends object> {
	private readonly watchers = new Set<() => void>();

	constructor(private value: T) {}

	get = (): T => this.value;

	/** Takes changes over; watchers are told only if something is different. */
	set(change: Partial<T>): void {
		const same = Object.entries(change).every(([key, value]) => Object.is(this.value[key as keyof T], value));
		if (same) return;
		this.value = { ...this.value, ...change };
		for (const tell of [...this.watchers]) tell();
	}

	watch = (tell: () => void): (() => void) => {
		this.watchers.add(tell);
		return () => this.watchers.delete(tell);
	};
}
