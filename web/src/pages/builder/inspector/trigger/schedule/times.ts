import { type Cron, onDay } from "./cron";

// Computes when a schedule fires next, in a time zone.

const minute = 60_000;
const day = 24 * 60 * minute;

/** How many days to search: leap days can be eight years apart. */
const maxDays = 9 * 366;

/** A formatter for the time zone; undefined if the browser does not know it. */
export function zoneClock(zone: string): Intl.DateTimeFormat | undefined {
	try {
		return new Intl.DateTimeFormat("en-US", {
			timeZone: zone,
			hourCycle: "h23",
			year: "numeric",
			month: "numeric",
			day: "numeric",
			hour: "numeric",
			minute: "numeric",
			second: "numeric",
		});
	} catch {
		return undefined;
	}
}

/** The local time in a zone, encoded as if it were UTC. */
function wallAt(clock: Intl.DateTimeFormat, at: number): number {
	const part: Record<string, number> = {};
	for (const { type, value } of clock.formatToParts(at)) part[type] = Number(value);
	const { year = 0, month = 1, day: date = 1, hour = 0, minute: minutes = 0, second = 0 } = part;
	return Date.UTC(year, month - 1, date, hour, minutes, second);
}

/**
 * The instants of a local time, usually one. A skipped time maps to the moment clocks are
 * set forward; of a repeated time the first counts, unless the schedule runs every hour.
 */
function momentsOf(clock: Intl.DateTimeFormat, wall: number, everyHour: boolean): number[] {
	const offset = (at: number) => wallAt(clock, at) - at;
	const early = wall - offset(wall - day);
	const late = wall - offset(wall + day);
	const shown = [...new Set([early, late])].filter((at) => wallAt(clock, at) === wall).sort((a, b) => a - b);
	if (shown.length === 0) return [changeBetween(clock, wall - offset(wall + day), wall - offset(wall - day))];
	return everyHour ? shown : shown.slice(0, 1);
}

/** The instant between two at which the clocks of a zone change. */
function changeBetween(clock: Intl.DateTimeFormat, from: number, to: number): number {
	const offset = (at: number) => wallAt(clock, at) - at;
	let [low, high] = [Math.min(from, to) - minute, Math.max(from, to)];
	const before = offset(low);
	while (high - low > minute) {
		const middle = low + Math.floor((high - low) / 2 / minute) * minute;
		if (offset(middle) === before) low = middle;
		else high = middle;
	}
	return high;
}

/** The next `count` times of a schedule after an instant; fewer if there are not as many. */
export function nextTimes(cron: Cron, zone: string, after: number, count: number): number[] {
	const clock = zoneClock(zone);
	if (!clock) return [];
	const everyHour = cron.hour.size === 24;
	const today = Math.floor(wallAt(clock, after) / day) * day;
	const hours = [...cron.hour].sort((a, b) => a - b);
	const minutes = [...cron.minute].sort((a, b) => a - b);
	const out = new Set<number>();
	for (let i = -1; i < maxDays && out.size < count; i++) {
		const date = new Date(today + i * day);
		if (!onDay(cron, date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())) continue;
		const found: number[] = [];
		for (const hour of hours) {
			// A day has up to 1440 times, so past hours are skipped.
			if (date.getTime() + (hour + 1) * 60 * minute < wallAt(clock, after) - 4 * 60 * minute) continue;
			for (const at of minutes) {
				found.push(...momentsOf(clock, date.getTime() + hour * 60 * minute + at * minute, everyHour));
			}
			if (found.filter((at) => at > after).length >= count + 120) break;
		}
		for (const at of found.sort((a, b) => a - b)) {
			if (at > after && out.size < count) out.add(at);
		}
	}
	return [...out];
}
