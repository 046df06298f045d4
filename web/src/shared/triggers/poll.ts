import { RetryIcon } from "@/ui/icons";
import type { TriggerInfo } from "./info";

export const poll: TriggerInfo = {
	type: "poll",
	name: "Poll",
	icon: RetryIcon,
	summary: "For each new item returned by a server that is polled regularly.",
	keywords: ["api", "http", "check", "watch", "rss", "feed"],
	lead: "A server is polled regularly, and each new item in its response starts a run.",
	initial: { every: "5m", request: { url: "" }, items: "response.body", key: "item.id" },
	first: "/request",
};
