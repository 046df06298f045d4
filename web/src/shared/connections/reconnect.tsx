import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { direct, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { useHostConfirmation } from "./confirm-hosts";
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
	const [asking, setAsking] = useState(false);
	const [consent, setConsent] = useState<PendingConsent>();
	const [device, setDevice] = useState<DeviceConsent>();
	const byCode = usesDeviceCode(connection.auth, connection.definition);
	const client = useQueryClient();
	const integrations = useIntegrations().data;
	const confirmation = useHostConfirmation(integrations?.find((one) => one.id === integration));
	const begin = useMutation({
		meta: { quiet: true },
		mutationFn: async () => {
			const params = { path: { id } };
			if (byCode) {
				setDevice(await got(direct.POST("/ui/v1/connections/{id}/reconnect-device", { params })));
				return;
			}
			const body = confirmation.hosts && { hosts: confirmation.hosts };
			const { authorize_url: url } = await got(direct.POST("/ui/v1/connections/{id}/reconnect", { params, body }));
			announce(url);
			setAsking(false);
			setConsent(openConsent(url));
		},
		onError: confirmation.onError,
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
		setAsking(false);
		setConsent(undefined);
		setDevice(undefined);
		confirmation.reset();
		begin.reset();
	};
	const start = () => (confirmation.isMissing ? setAsking(true) : begin.mutate());
	const title = `Reconnect “${name}”`;
	const service = integration === null ? "the service" : serviceName(connection, integrations);
	const problem = begin.error && toApiError(begin.error);
	const hostsProblem = problem?.field("/hosts");
	const draw = (): ReactNode => {
		if (asking) {
			return (
				<Dialog
					open
					onOpenChange={(open) => !open && close()}
					title={title}
					description={`You allow access in a window of ${service}.`}
					onSubmit={() => !confirmation.isMissing && begin.mutate()}
					actions={
						<>
							<Button onClick={close}>Cancel</Button>
							<Button type="submit" kind="primary" busy={begin.isPending} disabled={confirmation.isMissing}>
								Continue to {service}
							</Button>
						</>
					}
				>
					{confirmation.control(hostsProblem)}
					{problem && !hostsProblem && <ConsentError error={problem} serviceName={service} />}
				</Dialog>
			);
		}
		if (problem) {
			return (
				<Dialog
					open
					onOpenChange={(open) => !open && close()}
					title={title}
					actions={
						<>
							<Button onClick={close}>Cancel</Button>
							<Button kind="primary" onClick={start}>
								Try again
							</Button>
						</>
					}
				>
					{byCode ? <ErrorNote error={problem} /> : <ConsentError error={problem} serviceName={service} />}
				</Dialog>
			);
		}
		if (device) {
			return (
				<DeviceWait
					key={device.state}
					title={title}
					device={device}
					onClose={close}
					onAgain={start}
					onConnected={() => {
						close();
						void done();
					}}
				/>
			);
		}
		return (
			consent && (
				<ConsentWait
					key={consent.url}
					title={title}
					serviceName={service}
					consent={consent}
					onClose={close}
					onAgain={start}
					onConnected={close}
				/>
			)
		);
	};
	return { start, isStarting: begin.isPending, dialog: draw() };
}
