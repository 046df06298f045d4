import { useState } from "react";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { TextInput } from "@/ui/field";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { markOf } from "../mark";
import { ConnectForm } from "./connect-form";
import { type Connection, type Integration, useConnections, useIntegrations } from "./data";
import { matchIntegrations } from "./form";

interface ConnectDialogProps {
	onClose: () => void;
	/** Called with the new connection. */
	onConnected: (connection: Connection) => void;
	/** The id of the service, if it is known already. */
	integration?: string;
}

/** ConnectDialog makes a connection: it asks for the service, then for what that service needs. */
export function ConnectDialog({ onClose, onConnected, integration }: ConnectDialogProps) {
	const [chosen, setService] = useState<Integration | null>();
	const [isFixed, setFixed] = useState(integration !== undefined);
	const connections = useConnections();
	const integrations = useIntegrations();
	const wanted = isFixed ? integration : chosen?.id;
	const service = integrations.data?.find(({ id }) => id === wanted) ?? (isFixed ? undefined : chosen);
	if (service !== undefined && connections.data) {
		return (
			<ConnectForm
				service={service}
				taken={connections.data.flatMap(({ name, aliases }) => [name, ...aliases])}
				onBack={() => {
					setFixed(false);
					setService(undefined);
				}}
				onClose={onClose}
				onConnected={onConnected}
			/>
		);
	}
	return (
		<Dialog open onOpenChange={(open) => !open && onClose()} title="New connection" description="Choose the service.">
			{connections.error ? (
				<ErrorState error={connections.error} onRetry={() => void connections.refetch()} />
			) : (
				<Services onChoose={setService} />
			)}
		</Dialog>
	);
}

function Services({ onChoose }: { onChoose: (service: Integration | null) => void }) {
	const [text, setText] = useState("");
	const { data, error, refetch } = useIntegrations();
	if (error) return <ErrorState error={error} onRetry={() => void refetch()} />;
	if (!data) return <SkeletonRows rows={4} />;
	const found = matchIntegrations(data, text);
	const categories = [...new Set(found.map(groupOf))].sort(
		(a, b) => Number(b === ownGroup) - Number(a === ownGroup) || (a < b ? -1 : 1),
	);
	return (
		<>
			<TextInput
				type="search"
				aria-label="Search services"
				placeholder="Search services"
				className="shrink-0"
				value={text}
				onChange={(event) => setText(event.target.value)}
			/>
			<div className="flex items-center gap-3 rounded-8 border px-3 py-2">
				<p className="min-w-0 flex-1">
					<span className="font-medium">Custom</span>
					<span className="block text-12 text-muted">
						Any other service, by its hosts and the way it authenticates.
					</span>
				</p>
				<Button onClick={() => onChoose(null)}>Custom connection</Button>
			</div>
			{categories.map((category) => (
				<section key={category} aria-label={category}>
					<h3 className="mb-1 text-12 font-medium text-muted first-letter:uppercase">{category}</h3>
					<ul className="grid grid-cols-2 gap-2 sm:grid-cols-3">
						{found
							.filter((one) => groupOf(one) === category)
							.map((one) => (
								<li key={one.id}>
									<Button icon={markOf(one.id)} className="w-full !justify-start" onClick={() => onChoose(one)}>
										<span className="truncate">{one.name}</span>
									</Button>
								</li>
							))}
					</ul>
				</section>
			))}
			{found.length === 0 && <p className="text-muted">No service matches. Use a custom connection.</p>}
		</>
	);
}

const ownGroup = "described by this workspace";

const groupOf = ({ own, category }: Integration): string => (own ? ownGroup : category);
