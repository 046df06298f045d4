import type { Step, Trigger } from "@/builder/model/types";

/** span writes a duration of the definition as people do: "30s" is "30 s", "1m30s" is "1 min 30 s". */
export function span(text: string): string {
	const units: Record<string, string> = { ms: "ms", s: "s", m: "min", h: "h", d: "d", w: "w" };
	const parts = [...text.matchAll(/([0-9.]+)(ms|[smhdw])/g)];
	if (parts.map((part) => part[0]).join("") !== text.trim()) return text;
	return parts.map(([, count, unit]) => `${count} ${units[unit as string]}`).join(" ");
}

/** bare is an expression without what only says that it is one. */
export function bare(expression: string): string {
	const inner = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(expression);
	return (inner ? (inner[1] as string) : expression).trim().replace(/\s+/g, " ");
}

/** frameWords is what the header of a frame says after its name. */
export function frameWords(step: Pick<Step, "foreach" | "parallel" | "repeat">): string[] {
	if (step.repeat) {
		const { until, every, max } = step.repeat;
		return [`Until ${bare(until) || "…"}`, every && `every ${span(every)}`, max && `at most ${max}`].filter(
			(word): word is string => Boolean(word),
		);
	}
	const list = bare(step.foreach ?? "").replace(/^trigger\.payload\./, "");
	const words = ["For each", list || "…"];
	return step.parallel && step.parallel > 1 ? [...words, `${step.parallel} at a time`] : words;
}

const triggerNames: Record<string, string> = {
	manual: "Run by hand",
	schedule: "Schedule",
	webhook: "Webhook",
	event: "Event",
	poll: "Poll",
	run: "Another run",
};

/** triggerName is what a kind of trigger is called. */
export function triggerName(type: string): string {
	return triggerNames[type] ?? type;
}

/** triggerWords says the most telling setting of a trigger. */
export function triggerWords(trigger: Trigger): string {
	for (const member of ["cron", "every", "event", "path", "url"]) {
		const value = trigger[member];
		if (typeof value === "string" && value) return member === "every" ? `every ${span(value)}` : value;
	}
	return trigger.id;
}
