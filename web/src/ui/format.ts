const units = ["bytes", "KiB", "MiB", "GiB"];

/** formatBytes formats a size in bytes. */
export function formatBytes(size: number): string {
	let unit = 0;
	while (size >= 1024 && unit < units.length - 1) {
		size /= 1024;
		unit++;
	}
	return `${size % 1 === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

/** formatNumber formats a number with thousands separators. */
export function formatNumber(n: number): string {
	return n.toLocaleString("en-US");
}
