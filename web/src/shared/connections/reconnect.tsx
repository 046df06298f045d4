import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { direct, got } from "@/api/client";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { consentMinutes, onConsent, openConsent, type PendingConsent } from "./consent";
import { ConsentError } from "./consent-error";
import { ConsentWait } from "./consent-wait";
import { type Connection, serviceName, useIntegrations } from "./data";
import { type DeviceConsent, DeviceWait } from "./device-wait";
import { usesDeviceCode } from "./form";

/** useReconnect returns what begins a new consent for a connection, and the dialog that waits for it. */
export function useReconnect(connection: Pick<Connection, "id" | "name" | "integration" | "auth" | "definition">): {
	start: () => void;
	isStarting: boolean;
	dialog: ReactNode;
} {
	const { id, name, integration } = connection;
	const [consent, setConsent] = useState<PendingConsent>();
	const [device, setDevice] = useState<DeviceConsent>();
	const byCode = usesDeviceCode(connection.auth, connection.definition);
	const client = useQueryClient();
	const integrations = useIntegrations().data;
	const begin = useMutation({
		meta: { quiet: true },
		mutationFn: async () => {
			const params = { path: { id } };
			if (byCode) {
				setDevice(await got(direct.POST("/ui/v1/connections/{id}/reconnect-device", { params })));
				return;
			}
			const { authorize_url: url } = await got(direct.POST("/ui/v1/connections/{id}/reconnect", { params }));
			announce(url);
			setConsent(openConsent(url));
		},
	});
	const done = () => {
		toast.done(`“${name}” was reconnected. Waiting runs continue.`);
		return client.invalidateQueries({ queryKey: ["connections"] });
	};
	// The banner of a run disappears once the run continues, perhaps before its dialog closes.
	const announce = (url: string) => {
		const stop = onConsent(url, async ({ connection: made }) => {
			stop();
			if (made) await done();
		});
		setTimeout(stop, consentMinutes * 60_000);
	};
	const close = () => {
		setConsent(undefined);
		setDevice(undefined);
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
				{byCode ? <ErrorNote error={begin.error} /> : <ConsentError error={begin.error} serviceName={service} />}
			</Dialog>
		) : device ? (
			<DeviceWait
				key={device.state}
				title={title}
				device={device}
				onClose={close}
				onAgain={() => begin.mutate()}
				onConnected={() => {
					close();
					void done();
				}}
			/>
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
