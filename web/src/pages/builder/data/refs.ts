import type { Step } from "@/shared/workflow/model";
import { stepTexts } from "@/shared/workflow/model/expressions";
import { missing } from "../inspector/expression/missing";

const nothing = { trigger: false, steps: new Set<string>(), failed: new Set<string>(), item: false, response: true };

/** What the input of a step refers to: `trigger`, `item`, and steps as `steps.<id>`. */
export function usedBy(step: Step): string[] {
	const names = stepTexts(step)
		.filter(({ at }) => at.startsWith("/with"))
		.flatMap(({ text, form }) => missing(text, form, nothing));
	return [...new Set(names)];
}
