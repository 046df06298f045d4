import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { toApiError } from "@/api/error";
import { Checkbox } from "@/ui/field";
import { sentence } from "@/ui/sentence";
import type { Integration } from "./data";

/** A confirmation of where the credential of a connection is sent. */
export interface HostConfirmation {
	/** The hosts to send with the request; undefined if they are not confirmed, or need not be. */
	hosts: string[] | undefined;
	/** Whether a confirmation is missing. */
	isMissing: boolean;
	/** Asks for the confirmation; null if none is needed. */
	control: (error?: string) => ReactNode;
	/** Reads the integration again if a request failed because its hosts have changed. */
	onError: (thrown: Error) => void;
	reset: () => void;
}

/** useHostConfirmation asks people to confirm the hosts of an integration that the workspace has described itself. */
export function useHostConfirmation(service: Integration | null | undefined, needed = true): HostConfirmation {
	const [confirmed, setConfirmed] = useState<string>();
	const client = useQueryClient();
	const asked = needed && service?.own ? service : undefined;
	const key = asked?.confirm_hosts.join(" ");
	// Other hosts than those that were confirmed must be confirmed again.
	const isConfirmed = asked !== undefined && confirmed === key;
	return {
		hosts: isConfirmed ? asked.confirm_hosts : undefined,
		isMissing: asked !== undefined && !isConfirmed,
		control: (error) =>
			asked && (
				<ConfirmHosts
					service={asked}
					checked={isConfirmed}
					onChange={(on) => setConfirmed(on ? key : undefined)}
					error={error}
				/>
			),
		onError: (thrown) => {
			if (toApiError(thrown).field("/hosts"))
				void client.invalidateQueries({ queryKey: ["integrations"], exact: true });
		},
		reset: () => setConfirmed(undefined),
	};
}

interface ConfirmHostsProps {
	service: Integration;
	checked: boolean;
	onChange: (checked: boolean) => void;
	error?: string;
}

function ConfirmHosts({ service, checked, onChange, error }: ConfirmHostsProps) {
	const hosts = service.confirm_hosts;
	return (
		<section aria-label="Where the credential is sent" className="flex flex-col gap-2 rounded-8 border bg-sunken p-3">
			<p>
				People of this workspace have described the integration {service.name}; it is not part of Stepmill. The
				credential of this connection will be sent to:
			</p>
			<ul className="flex flex-col gap-1">
				{hosts.map((host) => (
					<li key={host}>
						<code className="font-mono text-12 break-all">{host}</code>
					</li>
				))}
			</ul>
			{hosts.some((host) => host.includes("{")) && (
				<p className="text-12 text-muted">Names in braces stand for values of the connection.</p>
			)}
			<Checkbox
				required
				aria-invalid={error ? true : undefined}
				label={
					<>
						The credential may be sent to {hosts.length === 1 ? "this host" : "these hosts"}
						<span className="text-muted"> (required)</span>
					</>
				}
				checked={checked}
				onChange={(event) => onChange(event.target.checked)}
			/>
			{error && (
				<p role="alert" className="text-12 break-words text-failed">
					{sentence(error)}
				</p>
			)}
		</section>
	);
}
