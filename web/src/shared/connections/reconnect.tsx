import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { direct, got } from "@/api/client";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { consentMinutes, onConsent, openConsent, type PendingConsent } from "./consent";
import { ConsentError } from "./consent-error";
import { ConsentWait } from "./consent-wait";
import { type Connection, serviceName, useIntegrations } from "./data";

/** useReconnect returns what begins a new consent for a connection, and the dialog that waits for it. */
export function useReconnect(connection: Pick<Connection, "id" | "name" | "integration">): {
	start: () => void;
	isStarting: boolean;
	dialog: ReactNode;
} {
	const { id, name, integration } = connection;
	const [consent, setConsent] = useState<PendingConsent>();
	const client = useQueryClient();
	const integrations = useIntegrations().data;
	const begin = useMutation({
		meta: { quiet: true },
		mutationFn: async () => {
			const { authorize_url: url } = await got(
				direct.POST("/ui/v1/connections/{id}/reconnect", { params: { path: { id } } }),
			);
			announce(url);
			setConsent(openConsent(url));
		},
	});
	// The banner of a run disappears once the run continues, perhaps before its dialog closes.
	const announce = (url: string) => {
		const stop = onConsent(url, async ({ connection: made }) => {
			stop();
			if (!made) return;
			toast.done(`“${name}” was reconnected. Waiting runs continue.`);
			await client.invalidateQueries({ queryKey: ["connections"] });
		});
		setTimeout(stop, consentMinutes * 60_000);
	};
	const close = () => {
		setConsent(undefined);
		begin.reset();
	};
	const title = `Reconnect “${name}”`;
	const service = integration === null ? "the service" : serviceName(connection, integrations);
	return {
		start: () => begin.mutate(),
		isStarting: begin.isPending,
		dialog: begin.error ? (
			<Dialog
				open
				onOpenChange={(open) => !open && close()}
				title={title}
				actions={
					<>
						<Button onClick={close}>Cancel</Button>
						<Button kind="primary" onClick={() => begin.mutate()}>
							Try again
						</Button>
					</>
				}
			>
				<ConsentError error={begin.error} serviceName={service} />
			</Dialog>
		) : (
			consent && (
				<ConsentWait
					key={consent.url}
					title={title}
					serviceName={service}
					consent={consent}
					onClose={close}
					onAgain={() => begin.mutate()}
					onConnected={close}
				/>
			)
		),
	};
}
