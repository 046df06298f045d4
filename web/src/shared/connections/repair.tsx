import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { RetryIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { type Connection, useIntegrations } from "./data";
import { reconnectsByConsent } from "./form";
import { useReconnect } from "./reconnect";

interface RepairProps {
	connection: Connection;
	primary?: boolean;
}

/** Repair offers to reconnect a connection, or leads to the page where its credential is changed. */
export function Repair({ connection, primary = false }: RepairProps) {
	const write = useMay("write");
	const { data } = useIntegrations();
	if (write && connection.status === "needs_reconnect" && reconnectsByConsent(connection, data))
		return <ReconnectButton connection={connection} primary={primary} />;
	return (
		<Link to="/connections/$id" params={{ id: connection.id }}>
			Open {connection.name}
		</Link>
	);
}

function ReconnectButton({ connection, primary }: RepairProps) {
	const { start, isStarting, dialog } = useReconnect(connection);
	return (
		<>
			<Button small kind={primary ? "primary" : "secondary"} icon={RetryIcon} busy={isStarting} onClick={start}>
				Reconnect
			</Button>
			{dialog}
		</>
	);
}
