import type { components } from "@/api/schema";
import { CopyButton } from "@/ui/copy";
import { fullTime } from "@/ui/time";

type Subscription = NonNullable<components["schemas"]["TriggerState"]["subscription"]>;

/** SubscriptionFacts says whether a service calls when there is something new, or what people have to do for it. */
export function SubscriptionFacts({ subscription }: { subscription: Subscription }) {
	const { status, expires_at, last_error, url, setup } = subscription;
	return (
		<>
			<dt className="text-muted">Service</dt>
			<dd className="flex min-w-0 flex-col gap-1">
				<span className={status === "failing" ? "text-failed" : undefined}>{said[status] ?? status}</span>
				{last_error && <span className="break-words">{last_error.message}</span>}
				{expires_at && <span className="text-muted">Renewed before {fullTime(expires_at)}.</span>}
				{setup && <span className="break-words">{setup}</span>}
				{url && (
					<span className="flex items-center gap-1 rounded-6 border bg-canvas py-0.5 pr-1 pl-2">
						<code className="min-w-0 flex-1 truncate font-mono text-12" title={url}>
							{url}
						</code>
						<CopyButton value={url} label="Copy URL" />
					</span>
				)}
			</dd>
		</>
	);
}

const said: Record<string, string> = {
	pending: "It is being told where to call.",
	active: "It calls when there is something new.",
	failing: "It could not be told where to call. This is tried again.",
	manual: "It calls once its URL is entered there.",
};
