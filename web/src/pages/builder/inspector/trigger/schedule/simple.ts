// Converts common schedules from and to cron. The server parses cron expressions.

export type Repeat = "hour" | "day" | "weekdays" | "week" | "month";

/** A schedule that can be edited without cron. */
export interface Simple {
	readonly repeat: Repeat;
	readonly minute: number;
	readonly hour: number;
	/** 0 is Sunday. */
	readonly weekday: number;
	readonly day: number;
}

export const defaultSchedule: Simple = { repeat: "day", minute: 0, hour: 9, weekday: 1, day: 1 };

export function cronOf({ repeat, minute, hour, weekday, day }: Simple): string {
	switch (repeat) {
		case "hour":
			return `${minute} * * * *`;
		case "day":
			return `${minute} ${hour} * * *`;
		case "weekdays":
			return `${minute} ${hour} * * 1-5`;
		case "week":
			return `${minute} ${hour} * * ${weekday}`;
		case "month":
			return `${minute} ${hour} ${day} * *`;
	}
}

/** The simple schedule of a cron expression; undefined if it is not a simple one. */
export function simpleOf(cron: string): Simple | undefined {
	const fields = /^([0-5]?\d) (?:\*|([01]?\d|2[0-3])) (?:\*|(0?[1-9]|[12]\d|3[01])) \* (\*|1-5|mon-fri|[0-7])$/.exec(
		cron.trim().toLowerCase().replaceAll(/\s+/g, " "),
	);
	if (!fields) return undefined;
	const [, minute, hour, day, weekday = "*"] = fields;
	const at = { ...defaultSchedule, minute: Number(minute), hour: Number(hour ?? 0) };
	if (day !== undefined) {
		return hour !== undefined && weekday === "*" ? { ...at, repeat: "month", day: Number(day) } : undefined;
	}
	if (hour === undefined) {
		return weekday === "*" ? { ...defaultSchedule, repeat: "hour", minute: at.minute } : undefined;
	}
	if (weekday === "*") return { ...at, repeat: "day" };
	if (weekday === "1-5" || weekday === "mon-fri") return { ...at, repeat: "weekdays" };
	return { ...at, repeat: "week", weekday: Number(weekday) % 7 };
}
