import type { OAuthApp } from "@/shared/connections/data";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";

interface AppHooksProps {
	app: OAuthApp;
	serviceName: string;
	onClose: () => void;
}

/** AppHooks shows the URLs at which a service calls an OAuth app, for entering them there. */
export function AppHooks({ app, serviceName, onClose }: AppHooksProps) {
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Where ${serviceName} calls`}
			description={`Triggers that ${serviceName} calls need this URL there. Others work without it.`}
			actions={<Button onClick={onClose}>Close</Button>}
		>
			<ul className="flex flex-col gap-4">
				{app.hooks.map(({ hook, url, setup }) => (
					<li key={hook} className="flex min-w-0 flex-col gap-2">
						<div className="flex items-center gap-2">
							<code className="min-w-0 flex-1 rounded-6 border bg-sunken px-2 py-1.5 font-mono text-12 break-all">
								{url}
							</code>
							<CopyButton value={url} label="Copy the URL" />
						</div>
						<p className="text-12 break-words text-muted">{setup}</p>
					</li>
				))}
			</ul>
		</Dialog>
	);
}
