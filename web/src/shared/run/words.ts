import { fullTime } from "@/ui/time";

const instant = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** reasonText formats a reason from the server, with times in local format. */
export function reasonText(reason: string): string {
	const text = reason.replace(instant, (at) => fullTime(at));
	return text.charAt(0).toUpperCase() + text.slice(1);
}

/** waitingText describes in one line what a run is waiting for. */
export function waitingText(reason: string): string {
	if (/^(waiting|queued)\b/.test(reason)) return reasonText(reason);
	return reasonText(/^waits\b/.test(reason) ? reason.replace(/^waits/, "waiting") : `waiting: ${reason}`);
}
