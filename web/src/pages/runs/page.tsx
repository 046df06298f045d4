import { useMemo, useState } from "react";
import { useMay } from "@/api/session";
import { useFilters } from "@/shell/filters";
import { Button } from "@/ui/button";
import { formatNumber } from "@/ui/format";
import { RunsIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";
import { BulkBar } from "./bulk-bar";
import { FilterBar } from "./filter-bar";
import { type FilterName, isFiltered } from "./filters";
import { RunTable } from "./run-table";
import { useRuns } from "./use-runs";
import { useSelectAll } from "./use-select-all";

const none: ReadonlySet<string> = new Set();

export default function Runs() {
	const [filters, setFilters] = useFilters<FilterName>();
	const pages = useRuns(filters);
	const may = useMay("execute");
	const [picked, setPicked] = useState(none);
	const chosen = useMemo(() => pages.items.filter((run) => picked.has(run.id)), [pages.items, picked]);
	const everyLoaded = chosen.length > 0 && chosen.length === pages.items.length;
	const all = useSelectAll(pages, setPicked);
	const clear = () =>
		setFilters({
			status: undefined,
			workflow: undefined,
			trigger: undefined,
			since: undefined,
			after: undefined,
			before: undefined,
			text: undefined,
		});
	return (
		<Page>
			<PageHeader title="Runs" lead="Runs of all workflows, newest first." />
			<FilterBar filters={filters} onChange={setFilters} onClear={clear} />
			<Card>
				<Paged
					pages={pages}
					empty={
						isFiltered(filters) ? (
							<EmptyState
								icon={RunsIcon}
								title="No runs match these filters"
								actions={<Button onClick={clear}>Clear filters</Button>}
							/>
						) : (
							<EmptyState
								icon={RunsIcon}
								title="No runs yet"
								actions={
									<Button asChild>
										<Link to="/workflows" className="!text-text">
											Open workflows
										</Link>
									</Button>
								}
							>
								Run a workflow, or wait for a trigger to start one.
							</EmptyState>
						)
					}
				>
					{(runs) => <RunTable runs={runs} picked={picked} onPick={may ? setPicked : undefined} />}
				</Paged>
			</Card>
			{may && (
				<BulkBar
					chosen={chosen}
					onClear={() => {
						all.stop();
						setPicked(none);
					}}
					more={
						all.loading ? (
							<Button kind="quiet" onClick={all.stop}>
								Stop selecting
							</Button>
						) : (
							everyLoaded &&
							pages.hasNextPage && (
								<Button kind="quiet" onClick={() => void all.start()}>
									Select all that match, not only these {formatNumber(chosen.length)}
								</Button>
							)
						)
					}
				/>
			)}
		</Page>
	);
}
