import { isServiceTrigger, type OwnTriggerType, type TriggerType } from "@/shared/workflow/model";
import type { TriggerEditor } from "./editor";
import { event } from "./event/editor";
import { poll } from "./poll/editor";
import { schedule } from "./schedule/editor";
import { service } from "./service/editor";
import { webhook } from "./webhook/editor";

/** The types whose settings differ from the form that their schema gives. */
const triggerEditors: Readonly<Partial<Record<OwnTriggerType, TriggerEditor>>> = {
	manual: { neverFires: true },
	schedule,
	webhook,
	event,
	poll,
};

export function triggerEditor(type: TriggerType): TriggerEditor {
	return isServiceTrigger(type) ? service : (triggerEditors[type] ?? {});
}
