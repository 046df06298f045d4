import { ClockIcon } from "@/ui/icons";
import type { TriggerInfo } from "./info";
import { browserZone } from "./zone";

const zone = browserZone();

export const schedule: TriggerInfo = {
	type: "schedule",
	name: "Schedule",
	icon: ClockIcon,
	summary: "At set times, or at an interval.",
	keywords: ["cron", "timer", "interval", "every", "daily", "hourly", "weekly", "time", "date"],
	lead: "Runs start at set times, or at an interval.",
	// People mean nine o'clock where they are.
	initial: { cron: "0 9 * * *", ...(zone !== undefined && { timezone: zone }) },
	first: "/cron",
};
