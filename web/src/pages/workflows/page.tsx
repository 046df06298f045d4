import { lazy, Suspense, useEffect } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { useLiveQueries } from "@/live/hooks";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Button } from "@/ui/button";
import { NativeSelect, TextInput } from "@/ui/field";
import { PlusIcon, SearchIcon, UploadIcon, WorkflowIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";
import type { Workflow } from "./activity";
import { CreateDialog } from "./create";
import { Rows } from "./rows";
import { type State, states } from "./state";

const ImportDialog = lazy(() => import("./import-dialog"));

type Filter = "state" | "text" | "new" | "import";

export default function Workflows() {
	const [filters, setFilters] = useFilters<Filter>();
	const write = useMay("write");
	const { pages, text } = useWorkflows(filters);
	useLiveQueries("run.*", ["workflows", "list"]);
	useLiveQueries("workflow.*", ["workflows", "list"]);
	const create = () => write && setFilters({ new: "1" });
	useShortcut("N", "New workflow", create, "Workflows");
	const close = (open: boolean) => !open && setFilters({ new: undefined, import: undefined }, { replace: true });
	const filtered = Boolean(filters.state || text);
	return (
		<Page className="max-w-[1240px]!">
			<PageHeader
				title="Workflows"
				actions={
					write && (
						<>
							<Button icon={UploadIcon} onClick={() => setFilters({ import: "1" })}>
								Import
							</Button>
							<Button kind="primary" icon={PlusIcon} onClick={create}>
								New workflow
							</Button>
						</>
					)
				}
			/>
			<Card>
				<Filters filters={filters} onChange={setFilters} />
				<Paged
					pages={pages}
					empty={filtered ? <NoneFits onClear={setFilters} /> : <None write={write} onNew={create} />}
				>
					{(items) => <Rows workflows={items} />}
				</Paged>
			</Card>
			{write && filters.new && <CreateDialog onOpenChange={close} />}
			{write && filters.import && (
				<Suspense fallback={null}>
					<ImportDialog onOpenChange={close} />
				</Suspense>
			)}
		</Page>
	);
}

/** useWorkflows reads page by page; a search reads them all, since the API has none by name. */
function useWorkflows({ state, text: typed }: Partial<Record<Filter, string>>) {
	const wanted = state && state in states ? (state as State) : undefined;
	const pages = usePages<Workflow>(["workflows", "list", wanted], (cursor, signal) =>
		got(
			api.GET("/v1/workflows", {
				params: { query: { state: wanted, include: "activity", limit: 50, cursor } },
				signal,
			}),
		),
	);
	const text = (typed ?? "").trim().toLowerCase();
	const { hasNextPage, isFetching, error, fetchNextPage } = pages;
	const more = text !== "" && hasNextPage && !isFetching && !error;
	useEffect(() => {
		if (more) void fetchNextPage();
	}, [more, fetchNextPage]);
	const items = text ? pages.items.filter(({ name }) => name.toLowerCase().includes(text)) : pages.items;
	return { pages: { ...pages, items }, text };
}

interface FiltersProps {
	filters: Partial<Record<Filter, string>>;
	onChange: (patch: Partial<Record<Filter, string | undefined>>, options?: { replace?: boolean }) => void;
}

function Filters({ filters, onChange }: FiltersProps) {
	return (
		<search className="flex flex-wrap gap-2 border-b p-3">
			<span className="relative min-w-0 flex-1 basis-52">
				<SearchIcon className="pointer-events-none absolute top-2 left-2 text-muted" />
				<TextInput
					type="search"
					aria-label="Search by name"
					placeholder="Search by name"
					value={filters.text ?? ""}
					onChange={(event) => onChange({ text: event.target.value }, { replace: true })}
					className="pl-8"
				/>
			</span>
			<NativeSelect
				aria-label="State"
				className="w-36"
				value={filters.state ?? ""}
				onChange={(event) => onChange({ state: event.target.value })}
				options={[
					{ value: "", label: "Every state" },
					...Object.entries(states).map(([value, label]) => ({ value, label })),
				]}
			/>
		</search>
	);
}

function NoneFits({ onClear }: { onClear: FiltersProps["onChange"] }) {
	return (
		<EmptyState
			icon={SearchIcon}
			title="No workflow fits"
			actions={<Button onClick={() => onClear({ state: undefined, text: undefined })}>Clear the filters</Button>}
		>
			None has this name in this state.
		</EmptyState>
	);
}

function None({ write, onNew }: { write: boolean; onNew: () => void }) {
	return (
		<EmptyState
			icon={WorkflowIcon}
			title="No workflows yet. Start from a template or an empty canvas."
			actions={
				write && (
					<>
						<Button asChild>
							<Link plain to="/templates">
								Browse templates
							</Link>
						</Button>
						<Button kind="primary" icon={PlusIcon} onClick={onNew}>
							New workflow
						</Button>
					</>
				)
			}
		/>
	);
}
