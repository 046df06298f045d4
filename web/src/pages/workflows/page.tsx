import { lazy, Suspense } from "react";
import { api, got } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { useLiveQueries } from "@/live/hooks";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Button } from "@/ui/button";
import { NativeSelect } from "@/ui/field";
import { PlusIcon, SearchIcon, UploadIcon, WorkflowIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { SearchInput } from "@/ui/search-input";
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
	const pages = useWorkflows(filters);
	useLiveQueries("run.*", ["workflows", "list"]);
	useLiveQueries("workflow.*", ["workflows", "list"]);
	const create = () => write && setFilters({ new: "1" });
	useShortcut("N", "New workflow", create, "Workflows");
	const close = (open: boolean) => !open && setFilters({ new: undefined, import: undefined }, { replace: true });
	const filtered = Boolean(filters.state || filters.text?.trim());
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
					empty={filtered ? <NoMatches onClear={setFilters} /> : <NoWorkflows write={write} onNew={create} />}
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

function useWorkflows({ state, text: typed }: Partial<Record<Filter, string>>) {
	const wanted = state && state in states ? (state as State) : undefined;
	const text = typed?.trim() || undefined;
	return usePages<Workflow>(["workflows", "list", wanted, text], (cursor, signal) =>
		got(
			api.GET("/v1/workflows", {
				params: { query: { state: wanted, text, include: "activity", limit: 50, cursor } },
				signal,
			}),
		),
	);
}

interface FiltersProps {
	filters: Partial<Record<Filter, string>>;
	onChange: (patch: Partial<Record<Filter, string | undefined>>, options?: { replace?: boolean }) => void;
}

function Filters({ filters, onChange }: FiltersProps) {
	return (
		<search className="flex flex-wrap gap-2 border-b p-3">
			<SearchInput
				label="Search workflows"
				placeholder="Search by name or description"
				className="min-w-0 flex-1 basis-52"
				value={filters.text ?? ""}
				onChange={(text) => onChange({ text }, { replace: true })}
			/>
			<NativeSelect
				aria-label="State"
				className="w-36"
				value={filters.state ?? ""}
				onChange={(event) => onChange({ state: event.target.value })}
				options={[
					{ value: "", label: "Any state" },
					...Object.entries(states).map(([value, label]) => ({ value, label })),
				]}
			/>
		</search>
	);
}

function NoMatches({ onClear }: { onClear: FiltersProps["onChange"] }) {
	return (
		<EmptyState
			icon={SearchIcon}
			title="No workflows match"
			actions={<Button onClick={() => onClear({ state: undefined, text: undefined })}>Clear filters</Button>}
		>
			Try other words or another state.
		</EmptyState>
	);
}

function NoWorkflows({ write, onNew }: { write: boolean; onNew: () => void }) {
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
