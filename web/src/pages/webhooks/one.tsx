import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
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
import { Actions, type Asked } from "./actions";
import { useWebhook, useWorkflowNames, type Webhook } from "./data";
import { Deliveries } from "./deliveries";
import { EditDialog, MissedDialog, RotateDialog, SecretDialog } from "./dialogs";
import { Fact } from "./fact";
import { Standing } from "./standing";
import { Verify } from "./verify-tab";

export default function One() {
	const { id = "" } = useParams({ strict: false });
	const { data, error, refetch } = useWebhook(id);
	if (data) return <Shown webhook={data} />;
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

function Shown({ webhook }: { webhook: Webhook }) {
	const { id } = webhook;
	const [filters, setFilters] = useFilters<"tab">();
	const [asked, setAsked] = useState<Asked>();
	const [secret, setSecret] = useState<string>();
	const navigate = useNavigate();
	const client = useQueryClient();
	const close = (open: boolean) => !open && setAsked(undefined);
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
						<Standing webhook={webhook} />
					</span>
				}
				actions={<Actions webhook={webhook} onAsk={setAsked} />}
			/>
			<Trouble webhook={webhook} />
			<Facts webhook={webhook} />
			<Tabs
				label="Webhook"
				value={filters.tab === "verify" ? "verify" : "deliveries"}
				onChange={(tab) => setFilters({ tab: tab === "verify" ? tab : undefined }, { replace: true })}
				tabs={[
					{ value: "deliveries", label: "Deliveries", content: <Deliveries id={id} /> },
					{ value: "verify", label: "Check signatures", content: <Verify /> },
				]}
			/>
			{asked === "edit" && <EditDialog webhook={webhook} onOpenChange={close} />}
			{asked === "rotate" && <RotateDialog id={id} onOpenChange={close} onRotated={setSecret} />}
			{asked === "missed" && <MissedDialog id={id} onOpenChange={close} />}
			{secret && <SecretDialog title="The new signing secret" secret={secret} onDone={() => setSecret(undefined)} />}
			<ConfirmDialog
				open={asked === "delete"}
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

/** Trouble says why a webhook is disabled or about to be, and what to do. */
function Trouble({ webhook }: { webhook: Webhook }) {
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
						{webhook.disabled_reason ? "It was disabled by the service" : "It was disabled by hand"}
					</p>
					<p className="break-words">
						{sentence(webhook.disabled_reason ?? "nothing is sent until it is enabled again")} What was dropped can be
						sent again afterwards.
					</p>
				</div>
				{write && (
					<Button kind="primary" busy={enable.isPending} onClick={() => enable.mutate()}>
						Enable again
					</Button>
				)}
			</section>
		);
	if (!webhook.failing_since) return null;
	return (
		<section aria-label="Failing" className="rounded-8 border-l-4 border-waiting bg-waiting-soft px-4 py-3 break-words">
			<p className="font-medium text-waiting">Nothing has got through since {fullTime(webhook.failing_since)}</p>
			<p>Attempts go on. After five days of nothing but failures it is disabled.</p>
		</section>
	);
}

function Facts({ webhook }: { webhook: Webhook }) {
	const names = useWorkflowNames();
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
							{names.get(workflow) ?? workflow}
						</Link>
					)}
				</Fact>
				<Fact name="Signing secret">
					<code className="font-mono text-12">whsec_…{webhook.secret_hint}</code>
					{until && (
						<span className="block text-12 text-muted">
							The one before it counts too, for the last time <RelativeTime at={until} />.
						</span>
					)}
				</Fact>
				<Fact name="Id">
					<span className="flex min-w-0 items-center gap-1">
						<code className="truncate font-mono text-12">{webhook.id}</code>
						<CopyButton value={webhook.id} label="Copy id" />
					</span>
				</Fact>
			</dl>
		</Card>
	);
}
