import { BoltIcon } from "@/ui/icons";
import type { TriggerInfo } from "./info";

export const event: TriggerInfo = {
	type: "event",
	name: "Event",
	icon: BoltIcon,
	summary: "When something happens in another workflow, such as a failed run.",
	keywords: ["error", "failure", "another workflow", "catch"],
	lead: "Runs start when something happens in other workflows.",
	initial: { events: ["run.failed"] },
	first: "/events",
};
