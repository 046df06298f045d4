import { useId } from "react";
import { useSession } from "@/api/session";
import { CopyButton } from "@/ui/copy";

/** RedirectUrl shows the redirect URL, which people register at a service. */
export function RedirectUrl({ serviceName }: { serviceName: string }) {
	const { oauth_redirect_url: url } = useSession();
	const id = useId();
	return (
		<div role="group" aria-labelledby={id} className="flex min-w-0 flex-col gap-1">
			<p id={id} className="font-medium">
				Redirect URL
			</p>
			<div className="flex items-center gap-2">
				<code className="min-w-0 flex-1 rounded-6 border bg-sunken px-2 py-1.5 font-mono text-12 break-all">{url}</code>
				<CopyButton value={url} label="Copy the redirect URL" />
			</div>
			<p className="text-12 text-muted">
				Register it at {serviceName}, in the settings of your app, exactly as it is shown here. Some services call it
				the callback URL.
			</p>
		</div>
	);
}
