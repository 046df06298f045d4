import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { WorkflowName } from "@/shared/search/workflow-select";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog } from "@/ui/dialog";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { sentence } from "@/ui/sentence";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { fullTime, RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { type OpenDialog, WebhookActions } from "./actions";
import { useWebhook, type Webhook } from "./data";
import { Deliveries } from "./deliveries";
import { EditDialog, MissedDialog, RotateDialog, SecretDialog } from "./dialogs";
import { Fact } from "./fact";
import { Verify } from "./verify-tab";
import { WebhookStatus } from "./webhook-status";

export default function WebhookPage() {
	const { id = "" } = useParams({ strict: false });
	const { data, error, refetch } = useWebhook(id);
	if (data) return <WebhookContent webhook={data} />;
	return (
		<Page>
			<PageHeader title="Webhook" lead={<Back />} />
			<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
		</Page>
	);
}

function Back() {
	return <Link to="/webhooks">Webhooks</Link>;
}

function WebhookContent({ webhook }: { webhook: Webhook }) {
	const { id } = webhook;
	const [filters, setFilters] = useFilters<"tab">();
	const [dialog, setDialog] = useState<OpenDialog>();
	const [secret, setSecret] = useState<string>();
	const navigate = useNavigate();
	const client = useQueryClient();
	const close = (open: boolean) => !open && setDialog(undefined);
	const remove = async () => {
		await api.DELETE("/v1/webhooks/{id}", { params: { path: { id } } });
		toast.done("The webhook was deleted");
		await navigate({ to: "/webhooks", replace: true });
		client.removeQueries({ queryKey: ["webhooks", id] });
		await client.invalidateQueries({ queryKey: ["webhooks", "list"] });
	};
	return (
		<Page>
			<PageHeader
				title={webhook.url}
				lead={<Back />}
				badge={
					<span className="shrink-0">
						<WebhookStatus webhook={webhook} />
					</span>
				}
				actions={<WebhookActions webhook={webhook} onAsk={setDialog} />}
			/>
			<HealthNotice webhook={webhook} />
			<Facts webhook={webhook} />
			<Tabs
				label="Webhook"
				value={filters.tab === "verify" ? "verify" : "deliveries"}
				onChange={(tab) => setFilters({ tab: tab === "verify" ? tab : undefined }, { replace: true })}
				tabs={[
					{ value: "deliveries", label: "Deliveries", content: <Deliveries id={id} /> },
					{ value: "verify", label: "Verify signatures", content: <Verify /> },
				]}
			/>
			{dialog === "edit" && <EditDialog webhook={webhook} onOpenChange={close} />}
			{dialog === "rotate" && <RotateDialog id={id} onOpenChange={close} onRotated={setSecret} />}
			{dialog === "missed" && <MissedDialog id={id} onOpenChange={close} />}
			{secret && <SecretDialog title="New signing secret" secret={secret} onDone={() => setSecret(undefined)} />}
			<ConfirmDialog
				open={dialog === "delete"}
				onOpenChange={close}
				title="Delete this webhook?"
				verb="Delete webhook"
				danger
				onConfirm={remove}
			>
				Nothing is sent to <span className="break-all">{webhook.url}</span> any more, and the log of its deliveries is
				gone.
			</ConfirmDialog>
		</Page>
	);
}

/** HealthNotice explains why a webhook is disabled or about to be, and what to do. */
function HealthNotice({ webhook }: { webhook: Webhook }) {
	const write = useMay("write");
	const client = useQueryClient();
	const enable = useMutation({
		mutationFn: () =>
			got(api.PATCH("/v1/webhooks/{id}", { params: { path: { id: webhook.id } }, body: { enabled: true } })),
		onSuccess: () => client.invalidateQueries({ queryKey: ["webhooks"] }),
	});
	if (!webhook.enabled)
		return (
			<section
				aria-label="Disabled"
				className="flex flex-wrap items-center gap-3 rounded-8 border-l-4 border-failed bg-failed-soft px-4 py-3"
			>
				<div className="min-w-0 flex-1 basis-64">
					<p className="font-medium text-failed">
						{webhook.disabled_reason ? "Disabled automatically" : "Disabled manually"}
					</p>
					<p className="break-words">
						{sentence(webhook.disabled_reason ?? "no events are sent until you enable it")} Dropped events can be
						redelivered afterwards.
					</p>
				</div>
				{write && (
					<Button kind="primary" busy={enable.isPending} onClick={() => enable.mutate()}>
						Enable webhook
					</Button>
				)}
			</section>
		);
	if (!webhook.failing_since) return null;
	return (
		<section aria-label="Failing" className="rounded-8 border-l-4 border-waiting bg-waiting-soft px-4 py-3 break-words">
			<p className="font-medium text-waiting">All deliveries have failed since {fullTime(webhook.failing_since)}</p>
			<p>Stepmill keeps trying. After five days of failures, the webhook is disabled.</p>
		</section>
	);
}

function Facts({ webhook }: { webhook: Webhook }) {
	const { workflow_id: workflow, old_secret_until: until } = webhook;
	return (
		<Card className="px-4 py-3">
			<dl className="grid gap-x-6 gap-y-3 sm:grid-cols-3">
				<Fact name="Events" wide>
					<span className="flex flex-wrap gap-1">
						{webhook.events.map((event) => (
							<Badge key={event} mono>
								{event}
							</Badge>
						))}
					</span>
				</Fact>
				<Fact name="Workflow">
					{workflow === null ? (
						"All workflows"
					) : (
						<Link to="/workflows/$id" params={{ id: workflow }} className="break-words">
							<WorkflowName id={workflow} />
						</Link>
					)}
				</Fact>
				<Fact name="Signing secret">
					<code className="font-mono text-12">whsec_…{webhook.secret_hint}</code>
					{until && (
						<span className="block text-12 text-muted">
							The previous secret expires <RelativeTime at={until} />.
						</span>
					)}
				</Fact>
				<Fact name="ID">
					<span className="flex min-w-0 items-center gap-1">
						<code className="truncate font-mono text-12">{webhook.id}</code>
						<CopyButton value={webhook.id} label="Copy ID" />
					</span>
				</Fact>
			</dl>
		</Card>
	);
}
