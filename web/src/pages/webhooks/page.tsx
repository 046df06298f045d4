import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { WorkflowName } from "@/shared/search/workflow-select";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { PlusIcon, WebhookIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import type { Webhook } from "./data";
import { CreateDialog, SecretDialog } from "./dialogs";
import { WebhookStatus } from "./webhook-status";

export default function Webhooks() {
	const [filters, setFilters] = useFilters<"new">();
	const [made, setMade] = useState<Schema["WebhookCreated"]>();
	const write = useMay("write");
	const navigate = useNavigate();
	const pages = usePages<Webhook>(["webhooks", "list"], (cursor, signal) =>
		got(api.GET("/v1/webhooks", { params: { query: { limit: 50, cursor } }, signal })),
	);
	const create = () => write && setFilters({ new: "1" });
	useShortcut("N", "New webhook", create, "Webhooks");
	return (
		<Page>
			<PageHeader
				title="Webhooks"
				lead="Send events to your servers."
				actions={
					write && (
						<Button kind="primary" icon={PlusIcon} onClick={create}>
							New webhook
						</Button>
					)
				}
			/>
			<Card>
				<Paged pages={pages} empty={<NoWebhooks write={write} onNew={create} />}>
					{(items) => <Table label="Webhooks" columns={columns} rows={items} rowKey={(webhook) => webhook.id} />}
				</Paged>
			</Card>
			{write && filters.new && !made && (
				<CreateDialog
					onOpenChange={(open) => !open && setFilters({ new: undefined }, { replace: true })}
					onMade={setMade}
				/>
			)}
			{made && (
				<SecretDialog
					title="Webhook created"
					secret={made.signing_secret}
					onDone={() => void navigate({ to: "/webhooks/$id", params: { id: made.id }, replace: true })}
				/>
			)}
		</Page>
	);
}

const columns: Column<Webhook>[] = [
	{
		key: "url",
		header: "URL",
		className: "w-full max-w-0 min-w-52",
		cell: (webhook) => (
			<div className="flex min-w-0 flex-col gap-1">
				<Link
					plain
					to="/webhooks/$id"
					params={{ id: webhook.id }}
					title={webhook.url}
					className="row-link truncate font-medium"
				>
					{webhook.url}
				</Link>
				<span className="truncate text-12 text-muted">
					{webhook.workflow_id === null ? "All workflows" : <WorkflowName id={webhook.workflow_id} />}
				</span>
				<span className="sm:hidden">
					<WebhookStatus webhook={webhook} />
				</span>
			</div>
		),
	},
	{
		key: "events",
		header: "Events",
		wide: true,
		cell: ({ events }) => (
			<span className="flex w-52 flex-wrap gap-1">
				{events.length === 6 ? (
					<Badge>All events</Badge>
				) : (
					events.map((event) => (
						<Badge key={event} mono>
							{event}
						</Badge>
					))
				)}
			</span>
		),
	},
	{ key: "standing", header: "Status", wide: true, cell: (webhook) => <WebhookStatus webhook={webhook} /> },
	{ key: "created", header: "Created", wide: true, cell: (webhook) => <RelativeTime at={webhook.created_at} /> },
];

function NoWebhooks({ write, onNew }: { write: boolean; onNew: () => void }) {
	return (
		<EmptyState
			icon={WebhookIcon}
			title="No webhooks yet"
			actions={
				write && (
					<Button kind="primary" icon={PlusIcon} onClick={onNew}>
						New webhook
					</Button>
				)
			}
		>
			A webhook notifies your server when runs start and finish. Requests are signed, and retried when they fail.
		</EmptyState>
	);
}
