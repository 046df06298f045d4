import type { Status } from "@/ui/status";
import { duration } from "@/ui/time";
import type { StepHead } from "./record";

export interface Segment {
	readonly from: number;
	readonly to: number;
	readonly status: Status;
	/** Nothing was executing: the step waited for a time, a person or its next attempt. */
	readonly wait: boolean;
	readonly title: string;
}

const waiting = new Set(["flow.wait", "flow.approval"]);

/** segmentsOf returns the attempts of a step and the pauses between them. */
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
	if (open) out.push({ from: end.to, to: now, status: "waiting", wait: true, title: "Waiting for the next attempt" });
	return out;
}

const millisecondSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const minutes = [1, 2, 5, 10, 15, 30];

/** ticks returns at most `most` round times, in milliseconds from the start. */
export function ticks(length: number, most: number): number[] {
	const steps = [
		...millisecondSteps,
		...[1, 2, 5, 10, 15, 30].map((s) => s * 1_000),
		...minutes.map((m) => m * 60_000),
		...[1, 2, 3, 6, 12].map((h) => h * 3_600_000),
		...[1, 2, 7, 14, 30, 90, 365].map((d) => d * 86_400_000),
	];
	const step = steps.find((one) => length / one <= most) ?? (steps.at(-1) as number);
	return Array.from({ length: Math.floor(length / step) + 1 }, (_, at) => at * step);
}

/** tickLabel returns the label of a tick: "2 min", not "2 min 0 s". */
export function tickLabel(at: number): string {
	return at === 0 ? "0" : duration(at).replace(/ 0 (s|min|h)$/, "");
}
