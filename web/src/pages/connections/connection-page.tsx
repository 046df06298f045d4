import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { type Connection, serviceName, useIntegrations, useLiveConnections } from "@/shared/connections/data";
import { reconnectsByConsent } from "@/shared/connections/form";
import { useReconnect } from "@/shared/connections/reconnect";
import { ConnectionStatus, statusTodo, testVerb } from "@/shared/connections/status";
import { markOf } from "@/shared/mark";
import { Button } from "@/ui/button";
import { EditIcon, RetryIcon, TrashIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { sentence } from "@/ui/sentence";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { fullTime, RelativeTime } from "@/ui/time";
import { ChangeDialog } from "./change-dialog";
import { DeleteDialog } from "./delete-dialog";
import { AccessText, SettingsDialog } from "./settings-dialog";
import { useTest } from "./use-test";
import { Users } from "./users";

export default function ConnectionPage() {
	const { id = "" } = useParams({ strict: false });
	const { data, error, refetch } = useQuery({
		queryKey: ["connections", id],
		queryFn: ({ signal }) => got(api.GET("/v1/connections/{id}", { params: { path: { id } }, signal })),
	});
	useLiveConnections();
	if (data) return <Content connection={data} />;
	return (
		<Page>
			<PageHeader title="Connection" lead={<Back />} />
			<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
		</Page>
	);
}

const Back = () => <Link to="/connections">Connections</Link>;

function Content({ connection }: { connection: Connection }) {
	const { name } = connection;
	const [dialog, setDialog] = useState<"change" | "settings" | "delete">();
	const write = useMay("write");
	const navigate = useNavigate();
	const integrations = useIntegrations().data;
	const service = integrations?.find((one) => one.id === connection.integration);
	const test = useTest(connection);
	const reconnect = useReconnect(connection);
	const close = () => setDialog(undefined);
	const consents = reconnectsByConsent(connection, integrations);
	// Of an own integration whose use of the credential has changed.
	const mustConfirm = service?.own && !consents && connection.status === "needs_reconnect";
	return (
		<Page>
			<PageHeader
				title={name}
				lead={<Back />}
				badge={<ConnectionStatus status={connection.status} />}
				actions={
					write && (
						<>
							<Button busy={test.isPending} onClick={() => test.mutate()}>
								{testVerb(connection)}
							</Button>
							{consents && (
								<Button
									kind={connection.status === "needs_reconnect" ? "primary" : "secondary"}
									icon={RetryIcon}
									busy={reconnect.isStarting}
									onClick={reconnect.start}
								>
									Reconnect
								</Button>
							)}
							<Button kind={mustConfirm ? "primary" : "secondary"} icon={EditIcon} onClick={() => setDialog("change")}>
								Change
							</Button>
							<Button onClick={() => setDialog("settings")}>Name and access</Button>
							<Button icon={TrashIcon} onClick={() => setDialog("delete")}>
								Delete
							</Button>
						</>
					)
				}
			/>
			<Problem connection={connection} />
			<Ending connection={connection} />
			<Facts connection={connection} service={serviceName(connection, integrations)} />
			{reconnect.dialog}
			{dialog === "change" && <ChangeDialog connection={connection} service={service} onClose={close} />}
			{dialog === "settings" && <SettingsDialog connection={connection} onClose={close} />}
			{dialog === "delete" && (
				<DeleteDialog
					connection={connection}
					onClose={close}
					onDeleted={() => navigate({ to: "/connections", replace: true })}
				/>
			)}
		</Page>
	);
}

function Problem({ connection: { status, problem, waiting_runs: waiting } }: { connection: Connection }) {
	if (status !== "failing" && status !== "needs_reconnect") return null;
	return (
		<section aria-label="Problem" className="rounded-8 border-l-4 border-failed bg-failed-soft px-4 py-3 break-words">
			<p className="font-medium text-failed">{sentence(problem ?? "the connection does not work")}</p>
			<p>
				{statusTodo(status)} {waiting > 0 && `${waiting === 1 ? "1 run is" : `${waiting} runs are`} waiting.`}
			</p>
		</section>
	);
}

const noticeDays = 7;

/** Ending asks people to reconnect before the consent ends. */
function Ending({ connection: { status, consent_ends_at: end } }: { connection: Connection }) {
	if (!end || status === "needs_reconnect") return null;
	if (Date.parse(end) - Date.now() > noticeDays * 24 * 60 * 60 * 1000) return null;
	return (
		<section aria-label="The end of the consent" className="rounded-8 bg-waiting-soft px-4 py-3">
			<p className="font-medium text-waiting">
				The consent ends <RelativeTime at={end} />.
			</p>
			<p>Reconnect it before that, or steps will wait until someone does. Nothing is interrupted.</p>
		</section>
	);
}

function Facts({ connection, service }: { connection: Connection; service: string }) {
	const Mark = connection.integration === null ? null : markOf(connection.integration);
	return (
		<Card className="px-4 py-3">
			<dl className="grid gap-x-6 gap-y-3 sm:grid-cols-3">
				<Fact name="Service">
					<span className="flex items-center gap-2">
						{Mark && <Mark size={20} />}
						{service}
					</span>
				</Fact>
				<Fact name="Account">{connection.account ?? "Unknown"}</Fact>
				<Fact name="Last used">
					{connection.last_used_at ? <RelativeTime at={connection.last_used_at} /> : "never"}
				</Fact>
				<Fact name="Hosts">
					<code className="font-mono text-12 break-all">{connection.hosts.join(", ")}</code>
				</Fact>
				<Fact name="Token expires">{connection.expires_at ? fullTime(connection.expires_at) : "Not known"}</Fact>
				{connection.certificate_expires_at && (
					<Fact name="Client certificate expires">{fullTime(connection.certificate_expires_at)}</Fact>
				)}
				{connection.consent_ends_at && <Fact name="Consent ends">{fullTime(connection.consent_ends_at)}</Fact>}
				<Fact name="Waiting runs">{connection.waiting_runs}</Fact>
				{Object.entries(connection.fields)
					.filter(([name]) => name !== "client_certificate")
					.map(([name, value]) => (
						<Fact key={name} name={name}>
							{value}
						</Fact>
					))}
				<Fact name="Used by">
					{connection.used_by.length === 0 && "No workflow"}
					<Users users={connection.used_by} />
				</Fact>
				<Fact name="May be used by">
					<AccessText connection={connection} />
				</Fact>
				{connection.aliases.length > 0 && (
					<Fact name="Earlier names">
						<code className="font-mono text-12 break-all">{connection.aliases.join(", ")}</code>
					</Fact>
				)}
			</dl>
		</Card>
	);
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
	return (
		<div className="min-w-0">
			<dt className="text-12 text-muted">{name}</dt>
			<dd className="mt-1 min-w-0 break-words">{children}</dd>
		</div>
	);
}
