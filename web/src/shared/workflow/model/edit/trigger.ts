import { freshId, idFrom, idPattern, idRule } from "../id";
import { omit } from "../json";
import { set } from "../pointer";
import { type Doc, type Edit, type Json, rejectEdit, type Trigger, type TriggerType, triggerNode } from "../types";
import { renameKey } from "./rename";

export type NewTrigger = {
	readonly id?: string;
	readonly type: TriggerType;
	readonly [member: string]: Json | undefined;
};

export function addTrigger(doc: Doc, trigger: NewTrigger): Edit {
	const id = freshId(
		trigger.id ?? idFrom(trigger.type.split(".").at(-1) ?? trigger.type),
		new Set(doc.triggers.map((other) => other.id)),
	);
	const added: Trigger = { ...trigger, id };
	return { doc: { ...doc, triggers: [...doc.triggers, added] }, select: [triggerNode(id)] };
}

/** Changes a field of a trigger at a relative JSON pointer; undefined removes it. */
export function changeTrigger(doc: Doc, id: string, at: string, value: Json | undefined): Edit {
	if (!doc.triggers.some((trigger) => trigger.id === id)) return rejectEdit(doc, "The trigger no longer exists.");
	if (at === "/id")
		return typeof value === "string" ? renameTrigger(doc, id, value) : rejectEdit(doc, `The ID ${idRule}.`);
	const triggers = doc.triggers.map((trigger) => (trigger.id === id ? (set(trigger, at, value) as Trigger) : trigger));
	return { doc: { ...doc, triggers }, select: [triggerNode(id)] };
}

export function renameTrigger(doc: Doc, from: string, to: string): Edit {
	if (from === to) return { doc, select: [triggerNode(to)] };
	if (!idPattern.test(to)) return rejectEdit(doc, `The ID ${idRule}.`);
	if (doc.triggers.some((trigger) => trigger.id === to))
		return rejectEdit(doc, `The ID ${to} is used by another trigger.`);
	if (!doc.triggers.some((trigger) => trigger.id === from)) return rejectEdit(doc, "The trigger no longer exists.");
	const triggers = doc.triggers.map((trigger) => (trigger.id === from ? { ...trigger, id: to } : trigger));
	const at = doc.layout[triggerNode(from)];
	const rest = omit(doc.layout, triggerNode(from));
	const layout = at ? { ...rest, [triggerNode(to)]: at } : rest;
	const renamed = new Map([[triggerNode(from), triggerNode(to)]]);
	const pinned = renameKey(doc.pinned, triggerNode(from), triggerNode(to));
	return { doc: { ...doc, triggers, layout, pinned }, select: [triggerNode(to)], renamed };
}
