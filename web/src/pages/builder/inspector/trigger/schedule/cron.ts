// Parses five-field cron expressions like the server does, for a description and the next
// times. The server decides; this is a preview while typing.

export interface Cron {
	readonly minute: ReadonlySet<number>;
	readonly hour: ReadonlySet<number>;
	readonly day: ReadonlySet<number>;
	readonly month: ReadonlySet<number>;
	readonly weekday: ReadonlySet<number>;
	/** Whether the field is *; then the other one decides on the days. */
	readonly anyDay: boolean;
	readonly anyWeekday: boolean;
}

const monthNames = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

export const descriptors: Readonly<Record<string, string>> = {
	"@hourly": "0 * * * *",
	"@daily": "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *",
	"@yearly": "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
};

/** Parses the five fields or a descriptor; undefined if invalid. */
export function parseCron(text: string): Cron | undefined {
	const plain = text.trim().toLowerCase();
	const fields = (descriptors[plain] ?? plain).split(/\s+/);
	if (fields.length !== 5) return undefined;
	const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
	const sets = [
		parseField(minute, 0, 59),
		parseField(hour, 0, 23),
		parseField(day, 1, 31),
		parseField(month, 1, 12, monthNames, 1),
		parseField(weekday, 0, 7, dayNames, 0),
	];
	if (sets.some((set) => set === undefined)) return undefined;
	const [minutes, hours, days, months, weekdays] = sets as Set<number>[];
	return {
		minute: minutes as Set<number>,
		hour: hours as Set<number>,
		day: days as Set<number>,
		month: months as Set<number>,
		weekday: new Set([...(weekdays as Set<number>)].map((number) => number % 7)),
		anyDay: isAny(day),
		anyWeekday: isAny(weekday),
	};
}

function isAny(field: string): boolean {
	return field === "*" || field === "?";
}

function parseField(
	text: string,
	least: number,
	most: number,
	names: string[] = [],
	first = 0,
): Set<number> | undefined {
	const out = new Set<number>();
	for (const part of text.split(",")) {
		const [range = "", stride, ...rest] = part.split("/");
		const step = stride === undefined ? 1 : Number(stride);
		if (rest.length > 0 || !Number.isInteger(step) || step < 1) return undefined;
		const bounds = boundsOf(range, least, most, stride !== undefined, (word) => numberOf(word, names, first));
		if (!bounds) return undefined;
		for (let i = bounds[0]; i <= bounds[1]; i += step) out.add(i);
	}
	return out;
}

function boundsOf(
	range: string,
	least: number,
	most: number,
	open: boolean,
	read: (word: string) => number,
): [number, number] | undefined {
	if (isAny(range)) return [least, most];
	const [from = "", to, ...rest] = range.split("-");
	const start = read(from);
	// 5/15 means starting at 5.
	const end = to === undefined ? (open ? most : start) : read(to);
	const fine = rest.length === 0 && start >= least && end <= most && start <= end;
	return fine ? [start, end] : undefined;
}

function numberOf(word: string, names: string[], first: number): number {
	const named = names.indexOf(word);
	if (named >= 0) return named + first;
	return /^\d+$/.test(word) ? Number(word) : Number.NaN;
}

/** Whether a calendar day matches. If both kinds of days are given, either is enough. */
export function onDay(cron: Cron, year: number, month: number, day: number): boolean {
	if (!cron.month.has(month)) return false;
	const byDay = cron.day.has(day);
	const byWeekday = cron.weekday.has(new Date(Date.UTC(year, month - 1, day)).getUTCDay());
	return cron.anyDay || cron.anyWeekday ? byDay && byWeekday : byDay || byWeekday;
}
