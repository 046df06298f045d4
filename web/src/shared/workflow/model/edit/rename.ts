import { mapSettingsExpressions, mapTriggerExpressions, renameIn, renaming } from "../expressions";
import { idPattern, idRule } from "../id";
import { find } from "../tree";
import { type Doc, type Edit, rejectEdit } from "../types";

/** Changes the id of a step everywhere: needs, expressions, layout and pinned data. */
export function rename(doc: Doc, from: string, to: string): Edit {
	if (from === to) return { doc, select: [to] };
	if (!find(doc.steps, from)) return rejectEdit(doc, "The step no longer exists.");
	if (!idPattern.test(to)) return rejectEdit(doc, `The ID ${idRule}.`);
	if (find(doc.steps, to)) return rejectEdit(doc, `The ID ${to} is used by another step.`);
	const names = new Map([[from, to]]);
	const steps = doc.steps.map((step) => renameIn(step, names));
	const triggers = doc.triggers.map((trigger) => mapTriggerExpressions(trigger, renaming(names)));
	return {
		doc: {
			triggers: triggers.every((trigger, i) => trigger === doc.triggers[i]) ? doc.triggers : triggers,
			steps: steps.every((step, i) => step === doc.steps[i]) ? doc.steps : steps,
			settings: mapSettingsExpressions(doc.settings, renaming(names)),
			layout: renameKey(doc.layout, from, to),
			pinned: renameKey(doc.pinned, from, to),
		},
		select: [to],
		renamed: names,
	};
}

export function renameKey<T>(
	record: Readonly<Record<string, T>>,
	from: string,
	to: string,
): Readonly<Record<string, T>> {
	if (!Object.hasOwn(record, from)) return record;
	return Object.fromEntries(Object.entries(record).map(([key, value]) => [key === from ? to : key, value]));
}
