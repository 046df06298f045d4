import type { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import type { StepHead } from "./record";

export interface Segment {
	readonly from: number;
	readonly to: number;
	readonly status: Status;
	/** Nothing was being executed: it waited for a time, a person or its next attempt. */
	readonly wait: boolean;
	readonly title: string;
}

const waiting = new Set(["flow.wait", "flow.approval"]);

/** segmentsOf are the attempts of a step and the pauses between them. */
export function segmentsOf(head: StepHead, now: number): Segment[] {
	const out: Segment[] = [];
	for (const attempt of head.attempts) {
		const from = Date.parse(attempt.started_at);
		const last = out.at(-1);
		if (last && last.to < from) {
			out.push({ from: last.to, to: from, status: "waiting", wait: true, title: "Waited for the next attempt" });
		}
		out.push({
			from,
			to: attempt.finished_at ? Date.parse(attempt.finished_at) : now,
			status: attempt.status,
			wait: attempt.status === "waiting" || waiting.has(head.type),
			title: head.attempts.length > 1 ? `Attempt ${attempt.attempt}` : "",
		});
	}
	const end = out.at(-1);
	const open = head.finished_at === null && end !== undefined && end.to < now;
	if (open) out.push({ from: end.to, to: now, status: "waiting", wait: true, title: "Waits for the next attempt" });
	return out;
}

const nice = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const minutes = [1, 2, 5, 10, 15, 30];

/** ticks are round points of time, at most `most` of them, in milliseconds from the beginning. */
export function ticks(length: number, most: number): number[] {
	const steps = [
		...nice,
		...[1, 2, 5, 10, 15, 30].map((s) => s * 1_000),
		...minutes.map((m) => m * 60_000),
		...[1, 2, 3, 6, 12].map((h) => h * 3_600_000),
		...[1, 2, 7, 14, 30, 90, 365].map((d) => d * 86_400_000),
	];
	const step = steps.find((one) => length / one <= most) ?? (steps.at(-1) as number);
	return Array.from({ length: Math.floor(length / step) + 1 }, (_, at) => at * step);
}

/** mark is what a tick says: "2 min", not "2 min 0 s". */
export function mark(at: number): string {
	return at === 0 ? "0" : duration(at).replace(/ 0 (s|min|h)$/, "");
}
