import { PlayIcon } from "@/ui/icons";
import type { TriggerInfo } from "./info";

export const manual: TriggerInfo = {
	type: "manual",
	name: "Manual",
	icon: PlayIcon,
	summary: "A person or a program starts it.",
	keywords: ["button", "click", "test", "by hand", "start"],
	lead: "Someone starts a run here or through the API. This works for every workflow.",
	initial: {},
	first: "/id",
	uncounted: true,
};
