import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { api, got, type Schema } from "@/api/client";
import { useMay } from "@/api/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { RetryIcon } from "@/ui/icons";
import { JsonView } from "@/ui/json";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { sentence } from "@/ui/sentence";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { StatusIcon } from "@/ui/status";
import { Card } from "@/ui/table";
import { duration, fullTime, RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { useWebhook } from "./data";
import { Fact } from "./fact";
import { useRefreshWhenDue } from "./refresh-when-due";
import { DeliveryBadge, statuses } from "./status";

type Detail = Schema["DeliveryDetail"];

export default function DeliveryPage() {
	const { id = "", delivery = "" } = useParams({ strict: false });
	const key = ["webhooks", id, "delivery", delivery];
	const { data, error, refetch, dataUpdatedAt } = useQuery({
		queryKey: key,
		queryFn: ({ signal }) => got(api.GET("/v1/deliveries/{id}", { params: { path: { id: delivery } }, signal })),
	});
	useRefreshWhenDue(data ? [data] : [], key, dataUpdatedAt);
	if (data) return <DeliveryContent webhook={id} delivery={data} />;
	return (
		<Page>
			<PageHeader title="Delivery" lead={<Back id={id} />} />
			<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
		</Page>
	);
}

function Back({ id }: { id: string }) {
	const { data } = useWebhook(id);
	return (
		<span className="flex min-w-0 gap-1">
			<Link to="/webhooks">Webhooks</Link>
			<span aria-hidden="true">/</span>
			<Link to="/webhooks/$id" params={{ id }} className="min-w-0 truncate">
				{data?.url ?? id}
			</Link>
		</span>
	);
}

function DeliveryContent({ webhook, delivery }: { webhook: string; delivery: Detail }) {
	const write = useMay("write");
	const navigate = useNavigate();
	const client = useQueryClient();
	const redeliver = useMutation({
		mutationFn: () => got(api.POST("/v1/deliveries/{id}/redeliver", { params: { path: { id: delivery.id } } })),
		onSuccess: async (made) => {
			toast.done("Redelivering the event");
			await client.invalidateQueries({ queryKey: ["webhooks", webhook, "deliveries"] });
			await navigate({ to: "/webhooks/$id/deliveries/$delivery", params: { id: webhook, delivery: made.id } });
		},
	});
	return (
		<Page>
			<PageHeader
				title={delivery.event}
				lead={<Back id={webhook} />}
				badge={delivery.sample && <Badge>Sample</Badge>}
				actions={
					write && (
						<Button icon={RetryIcon} busy={redeliver.isPending} onClick={() => redeliver.mutate()}>
							Redeliver
						</Button>
					)
				}
			/>
			<Facts delivery={delivery} />
			<Request delivery={delivery} />
			<section aria-labelledby="attempts" className="flex flex-col gap-2">
				<h2 id="attempts" className="text-14 font-semibold">
					Attempts
				</h2>
				{delivery.attempts.length === 0 && (
					<Card className="p-4 text-muted">No attempts yet. The first one starts immediately.</Card>
				)}
				{delivery.attempts.toReversed().map((attempt) => (
					<Attempt key={attempt.number} attempt={attempt} />
				))}
			</section>
		</Page>
	);
}

function Facts({ delivery }: { delivery: Detail }) {
	return (
		<Card className="px-4 py-3">
			<dl className="grid gap-x-6 gap-y-3 sm:grid-cols-2 lg:grid-cols-4">
				<Fact name="Status">
					<DeliveryBadge status={delivery.status} />
					<span className="mt-1 block text-12 text-muted">{statuses[delivery.status].description}</span>
				</Fact>
				<Fact name="Created">
					<RelativeTime at={delivery.created_at} />
				</Fact>
				<Fact name={delivery.finished_at ? "Finished" : "Next attempt"}>
					<RelativeTime at={delivery.finished_at ?? delivery.next_at} never="in progress" />
				</Fact>
				<Fact name="Related to">
					{delivery.sample ? (
						"Sample data"
					) : delivery.run_id ? (
						<Link to="/runs/$id" params={{ id: delivery.run_id }} className="block truncate font-mono text-12">
							{delivery.run_id}
						</Link>
					) : delivery.workflow_id ? (
						<Link
							to="/workflows/$id"
							params={{ id: delivery.workflow_id }}
							className="block truncate font-mono text-12"
						>
							{delivery.workflow_id}
						</Link>
					) : (
						<Link to="/connections">Connections</Link>
					)}
				</Fact>
			</dl>
		</Card>
	);
}

function Request({ delivery }: { delivery: Detail }) {
	const headers = [
		"Content-Type: application/json",
		`X-Service-Event: ${delivery.event}`,
		`X-Service-Delivery: ${delivery.id}`,
		`webhook-id: ${delivery.event_id}`,
		"webhook-timestamp, webhook-signature, X-Service-Signature: new for each attempt",
	];
	return (
		<section aria-labelledby="request" className="flex flex-col gap-2">
			<h2 id="request" className="text-14 font-semibold">
				Request
			</h2>
			<Card>
				<pre className="border-b px-4 py-3 font-mono text-12 break-words whitespace-pre-wrap text-muted">
					{headers.join("\n")}
				</pre>
				<div className="p-2">
					<JsonView value={delivery.body} label="Body" openDepth={4} />
				</div>
			</Card>
		</section>
	);
}

function Attempt({ attempt }: { attempt: Detail["attempts"][number] }) {
	const { number, at, duration_ms, status_code, error, answer } = attempt;
	return (
		<Card className="flex flex-col gap-2 px-4 py-3">
			<div className="flex flex-wrap items-center gap-x-3 gap-y-1">
				<StatusIcon status={error === null ? "succeeded" : "failed"} />
				<h3 className="font-medium">Attempt {number}</h3>
				<span className="text-muted">{fullTime(at)}</span>
				<span className="text-muted tabular">{duration(duration_ms)}</span>
				{status_code !== null && <Badge mono>{status_code}</Badge>}
			</div>
			{error && <p className="break-words text-failed">{sentence(error)}</p>}
			{answer ? (
				<CodeBlock label={`Response to attempt ${number}`} code={answer} wrap />
			) : (
				<p className="text-12 text-muted">{status_code === null ? "No response." : "The response had no body."}</p>
			)}
		</Card>
	);
}
