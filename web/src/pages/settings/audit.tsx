import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { listAuditEntriesActionValues } from "@/api/values";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { NativeSelect, TextInput } from "@/ui/field";
import { LogIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { SettingsFrame } from "./frame";

type Entry = Schema["AuditEntry"];

const actions: string[] = [...listAuditEntriesActionValues].sort();

export default function Audit() {
	const [filters, setFilters] = useFilters<"action" | "target">();
	const action = filters.action || undefined;
	const target = filters.target?.trim() || undefined;
	const pages = usePages(["audit", action, target], (cursor, signal) =>
		got(api.GET("/v1/audit", { params: { query: { action, target_id: target, limit: 50, cursor } }, signal })),
	);
	return (
		<SettingsFrame>
			<PageHeader title="Audit log" lead="Who changed what, and when. Entries are never altered." />
			<Card>
				<search className="flex flex-wrap gap-2 border-b p-3">
					<NativeSelect
						aria-label="Action"
						className="w-48"
						value={action ?? ""}
						onChange={(event) => setFilters({ action: event.target.value })}
						options={[
							{ value: "", label: "Any action" },
							...actionOptions(action).map((value) => ({ value, label: value })),
						]}
					/>
					<TextInput
						type="search"
						aria-label="Target ID or name"
						placeholder="Target ID or name"
						className="min-w-0 flex-1 basis-52"
						value={filters.target ?? ""}
						onChange={(event) => setFilters({ target: event.target.value }, { replace: true })}
					/>
				</search>
				<Paged
					pages={pages}
					empty={
						<EmptyState icon={LogIcon} title={action || target ? "No entries match" : "No entries yet"}>
							{(action || target) && "Try another action or target."}
						</EmptyState>
					}
				>
					{(entries) => <Entries entries={entries} />}
				</Paged>
			</Card>
		</SettingsFrame>
	);
}

/** actionOptions returns the actions to filter by, including an unknown one from the URL. */
function actionOptions(action?: string): string[] {
	return action && !actions.includes(action) ? [action, ...actions] : actions;
}

function Entries({ entries }: { entries: Entry[] }) {
	return (
		<Table
			label="Audit log"
			rows={entries}
			rowKey={(entry) => entry.id}
			columns={[
				{ key: "action", header: "Action", cell: (entry) => <span className="font-medium">{entry.action}</span> },
				{
					key: "target",
					header: "Target",
					className: "max-w-0 w-1/3",
					cell: (entry) => (
						<div className="truncate font-mono text-12" title={entry.target_id}>
							<Target entry={entry} />
						</div>
					),
				},
				{ key: "actor", header: "By", wide: true, cell: (entry) => <Actor entry={entry} /> },
				{
					key: "details",
					header: "Details",
					wide: true,
					className: "max-w-0 w-1/4",
					cell: (entry) => (
						<div className="truncate font-mono text-12 text-muted" title={detailsText(entry)}>
							{detailsText(entry)}
						</div>
					),
				},
				{ key: "at", header: "When", align: "right", cell: (entry) => <RelativeTime at={entry.at} /> },
			]}
		/>
	);
}

function Target({ entry }: { entry: Entry }) {
	if (entry.action.endsWith(".deleted")) return entry.target_id;
	if (entry.target_type === "workflow")
		return (
			<Link to="/workflows/$id" params={{ id: entry.target_id }}>
				{entry.target_id}
			</Link>
		);
	if (entry.target_type === "run")
		return (
			<Link to="/runs/$id" params={{ id: entry.target_id }}>
				{entry.target_id}
			</Link>
		);
	if (entry.target_type === "webhook")
		return (
			<Link to="/webhooks/$id" params={{ id: entry.target_id }}>
				{entry.target_id}
			</Link>
		);
	if (entry.target_type === "table")
		return (
			<Link to="/tables/$id" params={{ id: entry.target_id }}>
				{entry.target_id}
			</Link>
		);
	return entry.target_id;
}

const actorTypes: Record<string, string> = {
	api_key: "API key",
	user: "Member",
	cli: "Command line",
	system: "Stepmill",
	link: "Link",
};

function Actor({ entry }: { entry: Entry }) {
	return (
		<span className="flex items-center gap-2">
			<Badge>{actorTypes[entry.actor.type] ?? entry.actor.type}</Badge>
			{entry.actor.id && (
				<span className="max-w-40 truncate font-mono text-12 text-muted" title={entry.actor.id}>
					{entry.actor.id}
				</span>
			)}
		</span>
	);
}

function detailsText(entry: Entry): string {
	return Object.entries(entry.details)
		.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
		.join(", ");
}
