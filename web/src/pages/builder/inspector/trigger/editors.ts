import type { Trigger } from "@/shared/workflow/model";
import type { TriggerEditor } from "./editor";
import { event } from "./event/editor";
import { poll } from "./poll/editor";
import { schedule } from "./schedule/editor";
import { webhook } from "./webhook/editor";

/** The types whose settings differ from the form that their schema gives. */
export const triggerEditors: Readonly<Partial<Record<Trigger["type"], TriggerEditor>>> = {
	manual: { neverFires: true },
	schedule,
	webhook,
	event,
	poll,
};
