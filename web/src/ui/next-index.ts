/** nextIndex returns the index of the option that a key moves to, or null for other keys. */
export function nextIndex(key: string, at: number, count: number): number | null {
	if (count === 0) return null;
	switch (key) {
		case "ArrowDown":
			return (at + 1) % count;
		case "ArrowUp":
			return (at - 1 + count) % count;
		case "PageDown":
			return Math.min(at + 8, count - 1);
		case "PageUp":
			return Math.max(at - 8, 0);
		default:
			return null;
	}
}
