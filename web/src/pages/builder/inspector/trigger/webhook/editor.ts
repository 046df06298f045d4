import type { TriggerEditor } from "../editor";
import { WebhookAddress } from "./address";
import { Calls } from "./calls";

export const webhook: TriggerEditor = {
	Before: WebhookAddress,
	order: ["verify", "methods", "respond", "dedupe", "rate"],
	expressions: { dedupe: true, verify: "text" },
	Section: Calls,
};
