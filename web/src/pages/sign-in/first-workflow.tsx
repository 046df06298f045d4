import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { api, got, type Schema } from "@/api/client";
import { useSession } from "@/api/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { PlayIcon, TemplateIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { EmptyState, ErrorNote, ErrorState, Skeleton } from "@/ui/states";
import { Card } from "@/ui/table";
import { startTemplate } from "./start";

type Template = Schema["TemplateItem"];

/** FirstWorkflow takes a new user to their first successful run. */
export default function FirstWorkflow() {
	const { user } = useSession();
	const { data, error, isPending, refetch } = useQuery({
		queryKey: ["templates"],
		queryFn: ({ signal }) => got(api.GET("/v1/templates", { params: { query: { limit: 100 } }, signal })),
	});
	const first = data?.data.filter((template) => template.first_run).slice(0, 3) ?? [];
	return (
		<Page className="max-w-4xl">
			<PageHeader
				title="Create your first workflow"
				lead={`Welcome, ${user.name}. Choose a template to create a workflow and run it right away. You can change it later.`}
			/>
			{error && <ErrorState error={error} onRetry={refetch} />}
			{data && first.length === 0 && <EmptyState icon={TemplateIcon} title="No templates available" />}
			<ul className="grid gap-4 md:grid-cols-3">
				{isPending && [1, 2, 3].map((at) => <Skeleton key={at} className="h-52" />)}
				{first.map((template) => (
					<li key={template.name} className="flex">
						<TemplateCard template={template} />
					</li>
				))}
			</ul>
			<p className="text-muted">
				Or{" "}
				<Link to="/templates" className="text-accent hover:underline">
					browse all templates
				</Link>
				,{" "}
				<Link to="/workflows" search={{ new: "1" }} className="text-accent hover:underline">
					start with an empty canvas
				</Link>{" "}
				or{" "}
				<Link to="/workflows" className="text-accent hover:underline">
					skip this step
				</Link>
				.
			</p>
		</Page>
	);
}

function TemplateCard({ template }: { template: Template }) {
	const navigate = useNavigate();
	const starting = useMutation({
		mutationFn: () => startTemplate(template),
		meta: { quiet: true },
		onSuccess: (run) => navigate({ to: "/runs/$id", params: { id: run.id } }),
	});
	return (
		<Card className="flex w-full flex-col gap-3 p-4">
			<h2 className="text-14 font-semibold break-words">{template.title}</h2>
			<p className="flex-1 text-muted">{template.description}</p>
			<p className="flex flex-wrap gap-1">
				{template.uses.map((action) => (
					<Badge key={action} mono>
						{action}
					</Badge>
				))}
			</p>
			{starting.error && <ErrorNote error={starting.error} />}
			<Button
				kind="primary"
				icon={PlayIcon}
				busy={starting.isPending}
				onClick={() => starting.mutate()}
				aria-label={`Create and run: ${template.title}`}
			>
				Create and run
			</Button>
		</Card>
	);
}
