import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { AnswerButtons } from "@/shared/run/answer";
import { Until } from "@/shared/run/until";
import { useFreshApprovals } from "@/shared/run/use-approvals";
import { CopyButton } from "@/ui/copy";
import { ApprovalIcon, ExternalIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";
import { RelativeTime } from "@/ui/time";

type Approval = Schema["Approval"];

export default function Approvals() {
	const pages = usePages(["approvals", "all"], (cursor, signal) =>
		got(api.GET("/v1/approvals", { params: { query: { limit: 50, cursor } }, signal })),
	);
	useFreshApprovals("all");
	return (
		<Page className="!max-w-4xl">
			<PageHeader title="Approvals" lead="Steps that are waiting for a decision." />
			<Card>
				<Paged
					pages={pages}
					empty={
						<EmptyState icon={ApprovalIcon} title="No approvals waiting">
							When a run reaches an approval step, it waits here for a decision.
						</EmptyState>
					}
				>
					{(approvals) => (
						<ul aria-label="Approvals">
							{approvals.map((approval) => (
								<Item key={`${approval.run_id} ${approval.step_id}`} approval={approval} />
							))}
						</ul>
					)}
				</Paged>
			</Card>
		</Page>
	);
}

function Item({ approval }: { approval: Approval }) {
	const { run_id: run, step_id: step, message } = approval;
	const words = message ?? `${approval.step_name} is waiting for a decision.`;
	return (
		<li className="flex flex-wrap items-start gap-x-6 gap-y-3 border-b px-4 py-4 last:border-b-0">
			<div className="min-w-0 flex-1 basis-72">
				<p className="text-14 font-medium break-words whitespace-pre-line">{words}</p>
				<p className="mt-1 flex flex-wrap gap-x-3 text-muted">
					<Link to="/workflows/$id" params={{ id: approval.workflow_id }} className="max-w-full truncate">
						{approval.workflow_name}
					</Link>
					<Link to="/runs/$id" params={{ id: run }} search={{ step } as never} className="max-w-full truncate">
						{approval.step_name}
					</Link>
					<span>
						since <RelativeTime at={approval.since} />
					</span>
					<Until at={approval.until} />
				</p>
				<Addresses approval={approval} />
			</div>
			<AnswerButtons run={run} step={step} message={words} />
		</li>
	);
}

/**
 * Addresses shows links that let people without an account decide. The API returns them
 * only to callers who may decide themselves.
 */
function Addresses({ approval }: { approval: Approval }) {
	if (!approval.page_url) return null;
	return (
		<div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1 text-12 text-muted">
			<span className="inline-flex items-center gap-1">
				<a
					href={approval.page_url}
					target="_blank"
					rel="noreferrer"
					className="inline-flex items-center gap-1 text-accent hover:underline"
				>
					<ExternalIcon size={12} />
					Approval page
				</a>
				<CopyButton value={approval.page_url} label="Copy the link to the approval page" />
			</span>
			{approval.callback_url && (
				<span className="inline-flex items-center gap-1">
					Callback URL
					<CopyButton value={approval.callback_url} label="Copy the callback URL" />
				</span>
			)}
		</div>
	);
}
