import { WebhookIcon } from "@/ui/icons";
import type { TriggerInfo } from "./info";

export const webhook: TriggerInfo = {
	type: "webhook",
	name: "Webhook",
	icon: WebhookIcon,
	summary: "When another service calls its URL.",
	keywords: ["http", "api", "rest", "endpoint", "callback", "request", "form", "url"],
	lead: "Runs start when the URL of this trigger is called.",
	initial: {},
	first: "/id",
	called: true,
};
