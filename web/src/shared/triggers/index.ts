import { isServiceTrigger } from "@/shared/workflow/model";
import { BoltIcon, type Icon } from "@/ui/icons";
import { event } from "./event";
import type { TriggerInfo } from "./info";
import { manual } from "./manual";
import { poll } from "./poll";
import { schedule } from "./schedule";
import { serviceInfo } from "./service";
import { webhook } from "./webhook";

/** The types of triggers, in the order of the picker. */
export const triggerInfos: readonly TriggerInfo[] = [manual, schedule, webhook, event, poll];

/** triggerInfo returns what is known about a type; for an unknown one, as much as its name tells. */
export function triggerInfo(type: string): TriggerInfo {
	if (isServiceTrigger(type)) return serviceInfo(type);
	return (
		triggerInfos.find((info) => info.type === type) ?? {
			type: type as TriggerInfo["type"],
			name: type,
			icon: BoltIcon,
			summary: "",
			keywords: [],
			lead: "",
			initial: {},
			first: "/id",
		}
	);
}

/** triggerName returns the display name of what started a run: a type of trigger, or another run. */
export function triggerName(type: string): string {
	return type === "run" ? "Another run" : triggerInfo(type).name;
}

export function triggerIcon(type: string): Icon {
	return triggerInfo(type).icon;
}
