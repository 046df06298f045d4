import type { ServiceTriggerType } from "@/shared/workflow/model";
import { markOf } from "../mark";
import { bareName } from "../own";
import type { TriggerInfo } from "./info";

/** serviceInfo tells what the name of a service's type says: gmail.new_message is “New message”. */
export function serviceInfo(type: ServiceTriggerType): TriggerInfo {
	const [service = "", name = ""] = type.split(/[.@]/);
	return {
		type,
		name: words(name),
		icon: markOf(service),
		summary: words(bareName(service)),
		keywords: [],
		lead: "Each new item at the service starts a run.",
		initial: {},
		first: "/connection",
	};
}

const words = (name: string) => (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll("_", " ");
