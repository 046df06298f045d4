/** planName returns the display name of a plan. */
export function planName(plan: string): string {
	return plan.charAt(0).toUpperCase() + plan.slice(1);
}

export interface Day {
	date: string;
	requests: number;
	runs_started: number;
	runs_succeeded: number;
	runs_failed: number;
	runs_cancelled: number;
}

/** fillDays returns the counts of each of the last days. The API omits days without activity. */
export function fillDays(days: readonly Day[], count: number, today: Date): Day[] {
	const known = new Map(days.map((day) => [day.date, day]));
	return Array.from({ length: count }, (_, back) => {
		const at = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() - (count - 1 - back)));
		const date = at.toISOString().slice(0, 10);
		return (
			known.get(date) ?? { date, requests: 0, runs_started: 0, runs_succeeded: 0, runs_failed: 0, runs_cancelled: 0 }
		);
	});
}
