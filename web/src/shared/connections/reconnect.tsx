import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { direct, got } from "@/api/client";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { openConsent, type PendingConsent } from "./consent";
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
			setConsent(openConsent(url));
		},
	});
	const close = () => {
		setConsent(undefined);
		begin.reset();
	};
	const done = async () => {
		close();
		toast.done(`“${name}” was reconnected. Waiting runs continue.`);
		await client.invalidateQueries({ queryKey: ["connections"] });
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
					onConnected={done}
				/>
			)
		),
	};
}
