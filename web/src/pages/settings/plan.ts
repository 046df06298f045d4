/** planName is how a plan is written for people. */
export function planName(plan: string): string {
	return plan.charAt(0).toUpperCase() + plan.slice(1);
}

const units = ["bytes", "KiB", "MiB", "GiB"];

/** bytes writes a size as people read it. */
export function bytes(size: number): string {
	let unit = 0;
	while (size >= 1024 && unit < units.length - 1) {
		size /= 1024;
		unit++;
	}
	return `${size % 1 === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

/** whole writes a number with its thousands apart. */
export function whole(n: number): string {
	return n.toLocaleString("en-US");
}

export interface Day {
	date: string;
	requests: number;
	runs_started: number;
	runs_succeeded: number;
	runs_failed: number;
	runs_cancelled: number;
}

/** calendar gives each of the last days its counts: the API leaves out days on which nothing happened. */
export function calendar(days: readonly Day[], count: number, today: Date): Day[] {
	const known = new Map(days.map((day) => [day.date, day]));
	return Array.from({ length: count }, (_, back) => {
		const at = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() - (count - 1 - back)));
		const date = at.toISOString().slice(0, 10);
		return (
			known.get(date) ?? { date, requests: 0, runs_started: 0, runs_succeeded: 0, runs_failed: 0, runs_cancelled: 0 }
		);
	});
}
