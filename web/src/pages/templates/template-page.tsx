import { useParams } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { useMay } from "@/api/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { PlusIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { ErrorState, Skeleton, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { type Template, useTemplate } from "./data";
import { UseBadge } from "./use-badge";
import { UseDialog } from "./use-dialog";
import { useCreate } from "./use-template";

// The graph needs the parser and the layout of the builder, so it is loaded separately.
const Picture = lazy(() => import("./template-graph").then(({ TemplateGraph: Picture }) => ({ default: Picture })));

export default function TemplatePage() {
	const { name = "" } = useParams({ strict: false });
	const { data, error, refetch } = useTemplate(name);
	if (data) return <TemplateContent template={data} />;
	return (
		<Page>
			<PageHeader title="Template" lead={<Back />} />
			<Card>{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows />}</Card>
		</Page>
	);
}

function Back() {
	return <Link to="/templates">Templates</Link>;
}

function TemplateContent({ template }: { template: Template }) {
	const write = useMay("write");
	const [asking, setAsking] = useState(false);
	const create = useCreate(template.name, false);
	const { title, description, category, triggers, uses, inputs, source, payload } = template;
	return (
		<Page>
			<PageHeader
				title={title}
				lead={<Back />}
				actions={
					write && (
						<Button
							kind="primary"
							icon={PlusIcon}
							busy={create.isPending}
							onClick={() => (inputs.length > 0 ? setAsking(true) : create.mutate({}))}
						>
							Use this template
						</Button>
					)
				}
			/>
			<div className="flex flex-col gap-3">
				<p className="max-w-2xl text-14 break-words">{description}</p>
				<span className="flex flex-wrap gap-1">
					<Badge tone="accent">{category}</Badge>
					{[...triggers, ...uses].map((one) => (
						<UseBadge key={one} use={one} />
					))}
				</span>
			</div>
			{asking && <UseDialog template={template} onClose={() => setAsking(false)} />}
			{inputs.length > 0 && (
				<Section name="What it asks for">
					<ul className="flex list-disc flex-col gap-1 pl-5">
						{inputs.map((input) => (
							<li key={input.name} className="break-words">
								{input.title}
								{input.help && <span className="text-muted">: {input.help}</span>}
							</li>
						))}
					</ul>
				</Section>
			)}
			<Card className="bg-canvas! p-4">
				<Suspense fallback={<Skeleton className="h-64 w-full" />}>
					<Picture source={source} />
				</Suspense>
			</Card>
			<Section name="Definition">
				<CodeBlock label="YAML" code={source} />
			</Section>
			{Object.keys(payload).length > 0 && (
				<Section name="Sample payload">
					<CodeBlock label="Payload" code={JSON.stringify(payload, null, 2)} />
				</Section>
			)}
		</Page>
	);
}

function Section({ name, children }: { name: string; children: React.ReactNode }) {
	return (
		<section aria-label={name} className="flex flex-col gap-2">
			<h2 className="text-14 font-semibold">{name}</h2>
			{children}
		</section>
	);
}
