import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api, got } from "@/api/client";
import { useFilters } from "@/shell/filters";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { TextInput } from "@/ui/field";
import { DownloadIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Card } from "@/ui/table";
import { groupByTag, type Node, node, type Operation, type TagGroup } from "./document";
import { KeyField } from "./key";
import { Details, MethodBadge } from "./operation";
import { Prose } from "./prose";
import { DocumentContext } from "./schema";

export default function Reference() {
	const document = useQuery({
		queryKey: ["openapi"],
		queryFn: async ({ signal }) => node(await got(api.GET("/v1/openapi.json", { signal }))),
		staleTime: Number.POSITIVE_INFINITY,
	});
	return (
		<Page>
			<PageHeader
				title="API reference"
				lead="With an API key, a program can do everything the dashboard does."
				actions={
					<Button asChild icon={DownloadIcon}>
						<a href="/v1/openapi.yaml" download="stepmill-openapi.yaml">
							OpenAPI
						</a>
					</Button>
				}
			/>
			{document.isPending ? (
				<SkeletonRows rows={12} />
			) : document.error ? (
				<ErrorState error={document.error} onRetry={() => document.refetch()} />
			) : (
				<DocumentContext value={document.data}>
					<Content document={document.data} />
				</DocumentContext>
			)}
		</Page>
	);
}

function Content({ document }: { document: Node }) {
	const [filters, setFilters] = useFilters<"text" | "operation">();
	const [key, setKey] = useState("");
	const all = useMemo(() => groupByTag(document), [document]);
	const wanted = (filters.text ?? "").trim().toLowerCase();
	const found = useMemo(() => search(all, wanted), [all, wanted]);
	const selected = all.flatMap(({ operations }) => operations).find(({ id }) => id === filters.operation);
	return (
		<>
			<KeyField value={key} onChange={setKey} />
			<div className="grid items-start gap-6 grid-cols-[minmax(0,1fr)] lg:grid-cols-[280px_minmax(0,1fr)]">
				<Card className={cx("lg:sticky lg:top-4", selected && "max-lg:hidden")}>
					<div className="border-b p-3">
						<TextInput
							type="search"
							aria-label="Search operations"
							placeholder="Search operations"
							value={filters.text ?? ""}
							onChange={(event) => setFilters({ text: event.target.value }, { replace: true })}
						/>
					</div>
					<nav aria-label="Operations" className="max-h-[60vh] overflow-y-auto p-2 lg:max-h-[calc(100vh-8rem)]">
						{found.map((chapter) => (
							<List
								key={chapter.name}
								chapter={chapter}
								selected={selected}
								onSelect={(id) => setFilters({ operation: id })}
							/>
						))}
						{found.length === 0 && <EmptyState title="No operations match" />}
					</nav>
				</Card>
				<div className="min-w-0">
					{selected && (
						<Button className="mb-4 lg:hidden" onClick={() => setFilters({ operation: undefined })}>
							All operations
						</Button>
					)}
					{selected ? <Details operation={selected} apiKey={key} /> : <Introduction document={document} />}
				</div>
			</div>
		</>
	);
}

function search(all: TagGroup[], wanted: string): TagGroup[] {
	if (!wanted) return all;
	const fits = (one: Operation) => `${one.summary} ${one.method} ${one.path}`.toLowerCase().includes(wanted);
	return all
		.map((chapter) => ({ ...chapter, operations: chapter.operations.filter(fits) }))
		.filter(({ operations }) => operations.length > 0);
}

interface ListProps {
	chapter: TagGroup;
	selected?: Operation;
	onSelect: (id: string) => void;
}

function List({ chapter, selected, onSelect }: ListProps) {
	return (
		<section className="mb-3">
			<h2 className="px-2 py-1 text-12 font-semibold text-muted">{chapter.name}</h2>
			<ul>
				{chapter.operations.map((operation) => (
					<li key={operation.id}>
						<button
							type="button"
							aria-current={operation.id === selected?.id ? "true" : undefined}
							onClick={() => onSelect(operation.id)}
							className={cx(
								"flex w-full items-center gap-2 rounded-6 px-2 py-1.5 text-left hover:bg-sunken",
								operation.id === selected?.id && "bg-sunken font-medium",
							)}
						>
							<span className="w-16 shrink-0">
								<MethodBadge method={operation.method} />
							</span>
							<span className="min-w-0 truncate">{operation.summary}</span>
						</button>
					</li>
				))}
			</ul>
		</section>
	);
}

function Introduction({ document }: { document: Node }) {
	const { title, version, description } = node(document.info);
	return (
		<article className="flex min-w-0 flex-col gap-4">
			<h2 className="text-16 font-semibold">
				{String(title)} {String(version)}
			</h2>
			<Prose text={String(description ?? "")} />
		</article>
	);
}
