import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { listAuditEntriesActionValues } from "@/api/values";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { cx } from "@/ui/class";
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
							...actionOptions(action).map((value) => ({ value, label: actionLabel(value) })),
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
				{
					key: "action",
					header: "Action",
					cell: (entry) => (
						<span className="font-medium" title={entry.action}>
							{actionLabel(entry.action)}
						</span>
					),
				},
				{
					key: "target",
					header: "Target",
					className: "max-w-0 w-1/3",
					cell: (entry) => (
						<>
							<div className="truncate" title={entry.target_id}>
								<Target entry={entry} />
							</div>
							<p className="truncate text-12 text-muted sm:hidden">by {actorName(entry)}</p>
						</>
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

/** The pages of objects, by the type of the target. */
const pages = {
	workflow: "/workflows/$id",
	run: "/runs/$id",
	webhook: "/webhooks/$id",
	table: "/tables/$id",
} as const;

/** The object of an entry by its name, with its id where it has none. */
function Target({ entry }: { entry: Entry }) {
	const { target_type, target_id, target_name } = entry;
	const name = target_type === "run" && target_name ? `Run of ${target_name}` : (target_name ?? target_id);
	const to = pages[target_type as keyof typeof pages];
	if (!to || entry.action.endsWith(".deleted")) return name;
	return (
		<Link to={to} params={{ id: target_id }}>
			{name}
		</Link>
	);
}

const actorTypes: Record<string, string> = {
	api_key: "API key",
	user: "Member",
	cli: "Command line",
	system: "Stepmill",
	link: "Link",
};

function Actor({ entry }: { entry: Entry }) {
	const { type, id, name } = entry.actor;
	return (
		<span className="flex min-w-0 items-center gap-2">
			<Badge>{actorTypes[type] ?? type}</Badge>
			{id && (
				<span className={cx("max-w-40 truncate", !name && "font-mono text-12 text-muted")} title={id}>
					{name ?? id}
				</span>
			)}
		</span>
	);
}

function actorName({ actor: { type, id, name } }: Entry): string {
	return name ?? id ?? actorTypes[type] ?? type;
}

/** The names that the other columns show. */
const shownElsewhere = new Set(["name", "url", "email"]);

function detailsText({ details, target_name }: Entry): string {
	return Object.entries(details)
		.filter(([name, value]) => !shownElsewhere.has(name) || value !== target_name)
		.map(([name, value]) => `${words(name)}: ${valueText(value)}`)
		.join(", ");
}

function valueText(value: unknown): string {
	if (typeof value === "string") return value;
	if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(" and ");
	return JSON.stringify(value);
}

/** actionLabel turns workflow.restored into “Workflow restored”. */
export function actionLabel(action: string): string {
	const label = words(action.replace(".", " ")).replace(/^api /, "API ");
	return label.charAt(0).toUpperCase() + label.slice(1);
}

const words = (name: string) => name.replaceAll("_", " ");
