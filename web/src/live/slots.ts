/**
 * How many tabs of a browser follow events at the same time. Over HTTP/1.1 it has
 * six connections to a server, for all its tabs together: some have to stay free
 * for what the tabs ask.
 */
const most = 4;

/**
 * takeSlot waits until fewer tabs than that follow events, and answers how to give
 * the place back. Where tabs cannot agree with each other, everybody has a place.
 */
export function takeSlot(signal: AbortSignal): Promise<() => void> {
	const locks = globalThis.navigator?.locks;
	if (!locks) return Promise.resolve(() => undefined);
	return new Promise((resolve, reject) => {
		// The first of the places that becomes free is taken, and the others are left.
		const others = new AbortController();
		const giveUp = () => {
			others.abort();
			reject(signal.reason);
		};
		signal.addEventListener("abort", giveUp, { once: true });
		const take = () =>
			new Promise<void>((free) => {
				if (others.signal.aborted) return free();
				others.abort();
				signal.removeEventListener("abort", giveUp);
				resolve(free);
			});
		for (let place = 1; place <= most; place++) {
			locks.request(`stepmill.stream.${place}`, { signal: others.signal }, take).catch(() => undefined);
		}
	});
}
