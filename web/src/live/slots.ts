/**
 * The number of tabs that follow events at the same time. Over HTTP/1.1 a browser opens at
 * most six connections to a server for all its tabs, so some must stay free for requests.
 */
const maxTabs = 4;

/**
 * acquireSlot waits for one of the slots and returns a function that releases it. Browsers
 * without Web Locks have no limit.
 */
export function acquireSlot(signal: AbortSignal): Promise<() => void> {
	const locks = globalThis.navigator?.locks;
	if (!locks) return Promise.resolve(() => undefined);
	return new Promise((resolve, reject) => {
		// Take the first slot that becomes free and stop waiting for the others.
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
		for (let place = 1; place <= maxTabs; place++) {
			locks.request(`stepmill.stream.${place}`, { signal: others.signal }, take).catch(() => undefined);
		}
	});
}
