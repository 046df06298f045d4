import { useFilters } from "@/shell/filters";
import { Button } from "@/ui/button";
import { cx } from "@/ui/class";
import { TextInput } from "@/ui/field";
import { SearchIcon, TemplateIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { EmptyState, ErrorState, Skeleton } from "@/ui/states";
import { Card } from "@/ui/table";
import { type TemplateItem, useTemplates } from "./data";
import { categories, filterTemplates } from "./find";
import { UseBadge } from "./use-badge";

export default function Templates() {
	const [filters, setFilters] = useFilters<"category" | "text">();
	const { data, error, refetch, isPending } = useTemplates();
	const all = data?.data ?? [];
	const { category = "", text = "" } = filters;
	const found = filterTemplates(all, category, text);
	return (
		<Page>
			<PageHeader title="Templates" lead="Ready-made workflows. Using one creates a draft that you can change." />
			{all.length > 0 && (
				<search className="flex flex-col gap-3">
					<span className="relative">
						<SearchIcon className="pointer-events-none absolute top-2 left-2 text-muted" />
						<TextInput
							type="search"
							aria-label="Search templates"
							placeholder="Search templates"
							value={text}
							onChange={(event) => setFilters({ text: event.target.value }, { replace: true })}
							className="pl-8"
						/>
					</span>
					<Categories all={categories(all)} chosen={category} onChoose={(next) => setFilters({ category: next })} />
				</search>
			)}
			{isPending && <Loading />}
			{error && (
				<Card>
					<ErrorState error={error} onRetry={() => void refetch()} />
				</Card>
			)}
			{data && found.length === 0 && (
				<Card>
					<EmptyState
						icon={TemplateIcon}
						title={all.length === 0 ? "No templates available" : "No templates match"}
						actions={
							all.length > 0 && (
								<Button onClick={() => setFilters({ category: undefined, text: undefined })}>Clear filters</Button>
							)
						}
					/>
				</Card>
			)}
			{found.length > 0 && (
				<ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
					{found.map((template) => (
						<TemplateCard key={template.name} template={template} />
					))}
				</ul>
			)}
		</Page>
	);
}

function Categories({
	all,
	chosen,
	onChoose,
}: {
	all: string[];
	chosen: string;
	onChoose: (category: string) => void;
}) {
	return (
		<fieldset className="flex flex-wrap gap-2">
			<legend className="sr-only">Category</legend>
			{["", ...all].map((category) => (
				<button
					key={category}
					type="button"
					aria-pressed={category === chosen}
					onClick={() => onChoose(category)}
					className={cx(
						"h-7 rounded-full border px-3 text-12 font-medium",
						category === chosen ? "border-accent bg-accent-soft text-accent" : "bg-surface text-muted hover:text-text",
					)}
				>
					{category || "All"}
				</button>
			))}
		</fieldset>
	);
}

function TemplateCard({ template }: { template: TemplateItem }) {
	return (
		<li className="relative flex min-w-0 flex-col gap-2 rounded-12 border bg-surface p-4 hover:border-control">
			<span className="text-12 text-muted">{template.category}</span>
			<h2 className="text-14 font-semibold break-words">
				<Link plain to="/templates/$name" params={{ name: template.name }} className="row-link">
					{template.title}
				</Link>
			</h2>
			<div className="flex-1">
				<p className="line-clamp-3 text-muted">{template.description}</p>
			</div>
			<span className="flex flex-wrap gap-1">
				{[...template.triggers, ...template.uses].slice(0, 5).map((use) => (
					<UseBadge key={use} use={use} />
				))}
			</span>
		</li>
	);
}

function Loading() {
	return (
		<div role="status" aria-label="Loading" className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
			{["a", "b", "c", "d", "e", "f"].map((key) => (
				<div key={key} className="flex flex-col gap-3 rounded-12 border bg-surface p-4">
					<Skeleton className="h-3 w-20" />
					<Skeleton className="h-4 w-40" />
					<Skeleton className="h-12 w-full" />
					<Skeleton className="h-5 w-32" />
				</div>
			))}
		</div>
	);
}
