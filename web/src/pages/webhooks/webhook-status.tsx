import { Badge } from "@/ui/badge";
import { CheckIcon, StopIcon, WarningIcon } from "@/ui/icons";
import type { Webhook } from "./data";

/** WebhookStatus shows whether a webhook works. */
export function WebhookStatus({ webhook }: { webhook: Webhook }) {
	if (!webhook.enabled)
		return (
			<Badge tone={webhook.disabled_reason ? "bad" : "neutral"}>
				<StopIcon size={12} />
				Disabled
			</Badge>
		);
	if (webhook.failing_since)
		return (
			<Badge tone="warn">
				<WarningIcon size={12} />
				Failing
			</Badge>
		);
	return (
		<Badge tone="good">
			<CheckIcon size={12} />
			Enabled
		</Badge>
	);
}
