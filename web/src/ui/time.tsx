import { useEffect, useState } from "react";
import { Tooltip } from "./tooltip";

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

const units: [Intl.RelativeTimeFormatUnit, number][] = [
	["year", 31_536_000],
	["month", 2_592_000],
	["day", 86_400],
	["hour", 3_600],
	["minute", 60],
];

/** relativeTime describes a time relative to now. */
export function relativeTime(at: number, now: number): string {
	const seconds = Math.round((at - now) / 1000);
	for (const [unit, size] of units) {
		if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
	}
	if (Math.abs(seconds) < 5) return "just now";
	return relative.format(seconds, "second");
}

export function timeOfDay(at: number): string {
	return clock.format(at);
}

export function fullTime(at: string | number): string {
	return full.format(new Date(at));
}

/** useNow returns the current time and updates it while the tab is visible. */
export function useNow(every: number): number {
	const [now, setNow] = useState(() => Date.now());
	useEffect(() => {
		const timer = setInterval(() => {
			if (document.visibilityState !== "hidden") setNow(Date.now());
		}, every);
		return () => clearInterval(timer);
	}, [every]);
	return now;
}

/** RelativeTime shows "3 minutes ago", with the full time on hover. */
export function RelativeTime({ at, never = "never" }: { at: string | null | undefined; never?: string }) {
	const now = useNow(10_000);
	if (!at) return <span className="text-muted">{never}</span>;
	return (
		<Tooltip text={fullTime(at)}>
			<time dateTime={at} className="whitespace-nowrap">
				{relativeTime(Date.parse(at), now)}
			</time>
		</Tooltip>
	);
}

/** duration formats milliseconds in the two largest units. */
export function duration(ms: number): string {
	if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
	const seconds = ms / 1_000;
	if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
	const whole = Math.floor(seconds);
	if (whole < 3_600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
	if (whole < 86_400) return `${Math.floor(whole / 3_600)} h ${Math.floor((whole % 3_600) / 60)} min`;
	return `${Math.floor(whole / 86_400)} d ${Math.floor((whole % 86_400) / 3_600)} h`;
}

/** Duration shows how long something took, or a live count until it ends. */
export function Duration({ ms, since }: { ms?: number | null; since?: string | null }) {
	return (
		<span className="whitespace-nowrap tabular">
			{since ? <LiveDuration since={since} /> : ms == null ? "–" : duration(ms)}
		</span>
	);
}

function LiveDuration({ since }: { since: string }) {
	const now = useNow(1_000);
	return duration(Math.max(0, now - Date.parse(since)));
}
