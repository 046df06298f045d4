import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { type Integration, type OAuthApp, useIntegrations } from "@/shared/connections/data";
import { RedirectUrl } from "@/shared/connections/redirect-url";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { EditIcon, PlugIcon, PlusIcon, TrashIcon, WebhookIcon } from "@/ui/icons";
import { PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { AppHooks } from "./app-hooks";
import { SettingsFrame } from "./frame";
import { OAuthAppDialog } from "./oauth-app-dialog";

export default function OAuthApps() {
	const [filters, setFilters] = useFilters<"new">();
	const pages = usePages<OAuthApp>(["oauth-apps"], (cursor, signal) =>
		got(api.GET("/v1/oauth-apps", { params: { query: { cursor } }, signal })),
	);
	const add = (
		<Button kind="primary" icon={PlusIcon} onClick={() => setFilters({ new: "1" })}>
			Add OAuth app
		</Button>
	);
	return (
		<SettingsFrame>
			<PageHeader
				title="OAuth apps"
				lead="Services that people sign in to, such as Google or Slack, know Stepmill by an app that you register there once."
				actions={add}
			/>
			<Card className="p-4">
				<RedirectUrl serviceName="each service" />
			</Card>
			<Card>
				<Paged
					pages={pages}
					rows={3}
					empty={
						<EmptyState icon={PlugIcon} title="No OAuth apps yet" actions={add}>
							Register an app at a service, then add its client ID and secret here. Apps from the operator’s file are
							used without being listed.
						</EmptyState>
					}
				>
					{(apps) => <Rows apps={apps} />}
				</Paged>
			</Card>
			{filters.new && <OAuthAppDialog onClose={() => setFilters({ new: undefined }, { replace: true })} />}
		</SettingsFrame>
	);
}

function Rows({ apps }: { apps: OAuthApp[] }) {
	const [dialog, setDialog] = useState<{ what: "hooks" | "replace" | "delete"; app: OAuthApp }>();
	const integrations = useIntegrations().data;
	const queries = useQueryClient();
	const nameOf = (app: OAuthApp) => serviceOf(app, integrations).name;
	const close = () => setDialog(undefined);
	const remove = async (app: OAuthApp) => {
		await api.DELETE("/v1/oauth-apps/{id}", { params: { path: { id: app.id } } });
		toast.done(`The app for ${nameOf(app)} was deleted`);
		await queries.invalidateQueries({ queryKey: ["oauth-apps"] });
	};
	return (
		<>
			<Table
				label="OAuth apps"
				rows={apps}
				rowKey={({ id }) => id}
				columns={[
					{
						key: "service",
						header: "Service",
						className: "whitespace-nowrap",
						cell: (app) => {
							const { name, way } = serviceOf(app, integrations);
							return (
								<>
									<span className="flex items-center gap-2 font-medium">
										{name}
										{app.shared && <Badge>Shared</Badge>}
									</span>
									{way && <span className="block text-12 text-muted">{way}</span>}
								</>
							);
						},
					},
					{
						key: "client",
						header: "Client ID",
						className: "w-full max-w-0 min-w-24",
						cell: (app) => (
							<>
								<code className="block truncate font-mono text-12" title={app.client_id}>
									{app.client_id}
								</code>
								{Object.entries(app.fields).map(([name, value]) => (
									<span key={name} className="block truncate text-12 text-muted">
										{name}: {value}
									</span>
								))}
							</>
						),
					},
					{
						key: "updated",
						header: "Changed",
						wide: true,
						className: "whitespace-nowrap",
						cell: (app) => <RelativeTime at={app.updated_at} />,
					},
					{
						key: "actions",
						header: <span className="sr-only">Actions</span>,
						align: "right",
						cell: (app) => (
							<span className="flex justify-end gap-1">
								{app.hooks.length > 0 && (
									<IconButton
										icon={WebhookIcon}
										label={`Show where ${nameOf(app)} calls`}
										onClick={() => setDialog({ what: "hooks", app })}
									/>
								)}
								<IconButton
									icon={EditIcon}
									label={`Replace the app for ${nameOf(app)}`}
									onClick={() => setDialog({ what: "replace", app })}
								/>
								<IconButton
									icon={TrashIcon}
									label={`Delete the app for ${nameOf(app)}`}
									onClick={() => setDialog({ what: "delete", app })}
								/>
							</span>
						),
					},
				]}
			/>
			{dialog?.what === "hooks" && <AppHooks app={dialog.app} serviceName={nameOf(dialog.app)} onClose={close} />}
			{dialog?.what === "replace" && <OAuthAppDialog app={dialog.app} onClose={close} />}
			{dialog?.what === "delete" && (
				<ConfirmDialog
					open
					onOpenChange={(open) => !open && close()}
					title={`Delete the app for ${nameOf(dialog.app)}?`}
					verb="Delete app"
					danger
					onConfirm={() => remove(dialog.app)}
				>
					Existing connections keep working. New ones, and reconnecting, need another app.
					{dialog.app.hooks.length > 0 && ` Calls of ${nameOf(dialog.app)} no longer start runs.`}
				</ConfirmDialog>
			)}
		</>
	);
}

/** serviceOf returns the name of an app's service, and of the way to authenticate if several need an app. */
function serviceOf({ integration, auth }: OAuthApp, integrations: Integration[] = []): { name: string; way?: string } {
	const service = integrations.find(({ id }) => id === integration);
	const ways = service?.auth.filter(({ consent }) => consent) ?? [];
	const way = ways.length > 1 ? ways.find(({ id }) => id === auth)?.label : undefined;
	return { name: service?.name ?? integration, way };
}
