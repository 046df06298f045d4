import { type Cron, parseCron } from "./cron";

// Describes schedules in words, and converts common ones.

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

export const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const months = [
	"January",
	"February",
	"March",
	"April",
	"May",
	"June",
	"July",
	"August",
	"September",
	"October",
	"November",
	"December",
];

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
export function simpleOf(text: string): Simple | undefined {
	const cron = parseCron(text);
	const minute = cron && only(cron.minute);
	if (!cron || minute === undefined || cron.month.size < 12) return undefined;
	const hour = only(cron.hour);
	if (cron.hour.size === 24 && cron.anyDay && cron.anyWeekday) return { ...defaultSchedule, repeat: "hour", minute };
	if (hour === undefined) return undefined;
	if (cron.anyDay && cron.anyWeekday) return { ...defaultSchedule, repeat: "day", minute, hour };
	if (cron.anyDay && [...cron.weekday].sort().join() === "1,2,3,4,5")
		return { ...defaultSchedule, repeat: "weekdays", minute, hour };
	const weekday = only(cron.weekday);
	if (cron.anyDay && weekday !== undefined) return { ...defaultSchedule, repeat: "week", minute, hour, weekday };
	const day = only(cron.day);
	return cron.anyWeekday && day !== undefined ? { ...defaultSchedule, repeat: "month", minute, hour, day } : undefined;
}

function only(set: ReadonlySet<number>): number | undefined {
	return set.size === 1 ? [...set][0] : undefined;
}

/** Describes a cron expression; undefined if it is invalid. */
export function describeCron(text: string): string | undefined {
	const every = /^@every\s+(\S+)$/i.exec(text.trim());
	if (every) return `Every ${every[1]}`;
	const cron = parseCron(text);
	if (!cron) return undefined;
	const time = timeWords(cron);
	const day = dayWords(cron) || (time.startsWith("at ") && "every day");
	const when = (day === "every day" ? [day, time, monthWords(cron)] : [time, day, monthWords(cron)])
		.filter(Boolean)
		.join(" ");
	return when.charAt(0).toUpperCase() + when.slice(1);
}

function timeWords({ minute, hour }: Cron): string {
	const minutes = strideOf(minute, 60);
	const first = only(minute);
	if (hour.size === 24) {
		if (minutes === 1) return "every minute";
		if (minutes !== undefined) return `every ${minutes} minutes`;
		return first === undefined ? `at minutes ${list([...minute].map(String))} of every hour` : hourly(first);
	}
	if (first !== undefined && hour.size <= 6) return `at ${list([...hour].map((at) => clock(at, first)))}`;
	const hours = strideOf(hour, 24);
	const often =
		minutes === 1
			? "every minute"
			: minutes
				? `every ${minutes} minutes`
				: `at minutes ${list([...minute].map(String))}`;
	if (hours !== undefined) return `${often} of every ${ordinal(hours)} hour`;
	return `${often} in the hours ${list(ranges([...hour]))}`;
}

function hourly(minute: number): string {
	return minute === 0 ? "every hour" : `every hour at ${minute} past`;
}

function dayWords({ day, weekday, anyDay, anyWeekday }: Cron): string {
	const byDay = `on the ${list([...day].sort((a, b) => a - b).map(ordinal))} of the month`;
	const byWeekday = weekdayWords(weekday);
	if (anyDay && anyWeekday) return "";
	if (anyWeekday) return byDay;
	return anyDay ? byWeekday : `${byDay} and ${byWeekday}`;
}

function weekdayWords(set: ReadonlySet<number>): string {
	const key = [...set].sort().join();
	if (key === "1,2,3,4,5") return "from Monday to Friday";
	if (key === "0,6") return "at the weekend";
	// Weeks start on Monday.
	const order = [...set].sort((a, b) => ((a + 6) % 7) - ((b + 6) % 7));
	return `on ${list(order.map((day) => weekdays[day] as string))}`;
}

function monthWords({ month }: Cron): string {
	return month.size === 12 ? "" : `in ${list([...month].sort((a, b) => a - b).map((at) => months[at - 1] as string))}`;
}

/** The stride of a field that covers its range starting at 0; undefined if it does not. */
function strideOf(set: ReadonlySet<number>, size: number): number | undefined {
	const sorted = [...set].sort((a, b) => a - b);
	const step = sorted.length > 1 ? (sorted[1] as number) - (sorted[0] as number) : undefined;
	if (step === undefined || sorted[0] !== 0 || size % step !== 0) return undefined;
	return sorted.length === size / step && sorted.every((value, i) => value === i * step) ? step : undefined;
}

function ranges(numbers: number[]): string[] {
	const sorted = numbers.sort((a, b) => a - b);
	const out: [number, number][] = [];
	for (const number of sorted) {
		const last = out.at(-1);
		if (last && last[1] === number - 1) last[1] = number;
		else out.push([number, number]);
	}
	return out.map(([from, to]) => (from === to ? String(from) : `${from} to ${to}`));
}

function clock(hour: number, minute: number): string {
	return `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
}

function ordinal(number: number): string {
	const tail = number % 100 >= 11 && number % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
	return `${number}${tail}`;
}

function list(words: string[]): string {
	return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}
