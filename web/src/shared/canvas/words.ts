import { triggerInfo } from "@/shared/triggers";
import { isServiceTrigger, type Step, type Trigger, title } from "@/shared/workflow/model/types";

/** formatDuration formats a duration from the definition: "30s" is "30 s", "1m30s" is "1 min 30 s". */
export function formatDuration(text: string): string {
	const units: Record<string, string> = { ms: "ms", s: "s", m: "min", h: "h", d: "d", w: "w" };
	const parts = [...text.matchAll(/([0-9.]+)(ms|[smhdw])/g)];
	if (parts.map((part) => part[0]).join("") !== text.trim()) return text;
	return parts.map(([, count, unit]) => `${count} ${units[unit as string]}`).join(" ");
}

/** bareExpression removes the ${{ }} around an expression. */
export function bareExpression(expression: string): string {
	const inner = /^\s*\$\{\{([\s\S]*)\}\}\s*$/.exec(expression);
	return (inner ? (inner[1] as string) : expression).trim().replace(/\s+/g, " ");
}

/** stepLook is what a node shows of its step, with or without a run. */
export function stepLook(step: Step) {
	return {
		name: title(step),
		condition: step.if === undefined ? undefined : bareExpression(String(step.if)),
		attempts: step.retry?.max_attempts,
		continues: step.on_error === "continue",
		disabled: step.disabled === true,
	};
}

/** frameWords returns the description in the header of a frame. */
export function frameWords(step: Pick<Step, "foreach" | "parallel" | "repeat">): string[] {
	if (step.repeat) {
		const { until, every, max } = step.repeat;
		return [
			`Until ${bareExpression(until) || "…"}`,
			every && `every ${formatDuration(every)}`,
			max && `at most ${max}`,
		].filter((word): word is string => Boolean(word));
	}
	const list = bareExpression(step.foreach ?? "").replace(/^trigger\.payload\./, "");
	const words = ["For each", list || "…"];
	return step.parallel && step.parallel > 1 ? [...words, `${step.parallel} at a time`] : words;
}

/** triggerWords returns the most informative setting of a trigger. */
export function triggerWords(trigger: Trigger): string {
	if (isServiceTrigger(trigger.type)) return triggerInfo(trigger.type).summary;
	for (const member of ["cron", "every", "event", "path", "url"]) {
		const value = trigger[member];
		if (typeof value === "string" && value) return member === "every" ? `every ${formatDuration(value)}` : value;
	}
	return trigger.id;
}
