import { useNavigate } from "@tanstack/react-router";
import { Dialog as Radix } from "radix-ui";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { maxQuery, useRecentWorkflows, useSearch } from "@/shared/search/use-search";
import { cx } from "@/ui/class";
import {
	ChartIcon,
	type Icon,
	LogIcon,
	MembersIcon,
	PlayIcon,
	PlusIcon,
	RunsIcon,
	SearchIcon,
	TemplateIcon,
	WorkflowIcon,
} from "@/ui/icons";
import { nextIndex } from "@/ui/next-index";
import { panel, scrim } from "@/ui/overlay";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { type Command, commandsOf, parseQuery, type ResultActions, rank } from "./commands";
import { navItems } from "./nav-items";

const icons: Record<Command["group"], Icon> = {
	"Go to": SearchIcon,
	Create: PlusIcon,
	Workflows: WorkflowIcon,
	Run: PlayIcon,
	Runs: RunsIcon,
	Templates: TemplateIcon,
};

export function Palette({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
	return (
		<Radix.Root open={open} onOpenChange={onOpenChange}>
			<Radix.Portal>
				<Radix.Overlay className={scrim} />
				<Radix.Content
					aria-describedby={undefined}
					className={cx(
						panel,
						"fixed top-[12vh] left-1/2 z-50 flex max-h-[70vh] w-[calc(100vw-32px)] max-w-[560px] -translate-x-1/2 flex-col overflow-hidden rounded-12",
					)}
				>
					<Radix.Title className="sr-only">Search and commands</Radix.Title>
					<Search onDone={() => onOpenChange(false)} />
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}

function Search({ onDone }: { onDone: () => void }) {
	const id = useId();
	const [text, setText] = useState("");
	const [at, setAt] = useState(0);
	const { shown, busy, error } = useResults(text);
	const pointed = Math.min(at, shown.length - 1);
	const chosen = shown[pointed];
	const run = (command: Command) => {
		onDone();
		command.run();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const next = nextIndex(event.key, pointed, shown.length);
		if (next !== null) {
			event.preventDefault();
			setAt(next);
		} else if (event.key === "Enter" && chosen) {
			event.preventDefault();
			run(chosen);
		}
	};
	return (
		<>
			<div className="flex items-center gap-2 border-b px-4">
				<SearchIcon className="text-muted" />
				<input
					type="text"
					role="combobox"
					aria-label="Search and commands"
					aria-expanded="true"
					aria-controls={`${id}-list`}
					aria-activedescendant={chosen && `${id}-${chosen.id}`}
					autoComplete="off"
					spellCheck={false}
					placeholder="Search workflows, runs, templates and commands"
					maxLength={maxQuery}
					value={text}
					onChange={(event) => {
						setText(event.target.value);
						setAt(0);
					}}
					onKeyDown={onKeyDown}
					className="h-12 min-w-0 flex-1 bg-transparent text-14 outline-none"
				/>
			</div>
			<div role="listbox" id={`${id}-list`} aria-label="Commands" className="overflow-y-auto p-2">
				{shown.map((command, index) => (
					<CommandOption
						key={command.id}
						id={`${id}-${command.id}`}
						command={command}
						heading={index === 0 || shown[index - 1]?.group !== command.group}
						chosen={command === chosen}
						onPoint={() => setAt(index)}
						onRun={() => run(command)}
					/>
				))}
			</div>
			{error != null && <ErrorNote error={error} className="mx-2 mb-2" />}
			<p role="status" className="px-4 pb-3 text-center text-12 break-words text-muted empty:hidden">
				{busy ? "Searching…" : shown.length === 0 && !error ? `No results for “${text.trim()}”.` : null}
			</p>
		</>
	);
}

interface CommandOptionProps {
	id: string;
	command: Command;
	heading: boolean;
	chosen: boolean;
	onPoint: () => void;
	onRun: () => void;
}

function CommandOption({ id, command, heading, chosen, onPoint, onRun }: CommandOptionProps) {
	const Shape = command.icon ?? icons[command.group];
	return (
		<>
			{heading && (
				<p role="presentation" className="px-2 pt-2 pb-1 text-12 font-medium text-muted">
					{command.group}
				</p>
			)}
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: the input above handles the keys */}
			{/* biome-ignore lint/a11y/useFocusableInteractive: the field above keeps the focus */}
			<div
				ref={(row) => {
					if (chosen) row?.scrollIntoView({ block: "nearest" });
				}}
				id={id}
				role="option"
				aria-selected={chosen}
				onPointerMove={chosen ? undefined : onPoint}
				onClick={onRun}
				className={cx("flex h-9 cursor-default items-center gap-2 rounded-6 px-2", chosen && "bg-sunken")}
			>
				<Shape className="text-muted" />
				<span className="min-w-0 flex-1 truncate">{command.name}</span>
				{command.hint && <span className="max-w-1/2 truncate font-mono text-12 text-muted">{command.hint}</span>}
			</div>
		</>
	);
}

/** The number of matches per type, and of workflows before anything is typed. */
const perType = 8;
const recentCount = 12;

/** useResults returns the commands that match the text, and the search results from the server. */
function useResults(text: string): { shown: Command[]; busy: boolean; error: unknown } {
	const commands = useCommands();
	const steps = useResultActions();
	const { query, toRun } = parseQuery(text);
	const { found, busy, error } = useSearch(query, "workflow,run,template", perType);
	const recent = useRecentWorkflows(recentCount).data?.data;
	const typed = query !== "";
	const results = typed
		? commandsOf(found, steps, toRun)
		: commandsOf({ workflows: recent ?? [], runs: [], templates: [] }, { ...steps, start: undefined }, false);
	return { shown: [...rank(commands, text), ...results], busy, error };
}

function useResultActions(): ResultActions {
	const navigate = useNavigate();
	const execute = useMay("execute");
	const start = async (id: string) => {
		try {
			const run = await got(
				api.POST("/v1/workflows/{workflow_id}/runs", { params: { path: { workflow_id: id } }, body: {} }),
			);
			await navigate({ to: "/runs/$id", params: { id: run.id } });
		} catch (error) {
			toast.error(error);
		}
	};
	return {
		openWorkflow: (id) => void navigate({ to: "/workflows/$id", params: { id } }),
		openRun: (id) => void navigate({ to: "/runs/$id", params: { id } }),
		openTemplate: (name) => void navigate({ to: "/templates/$name", params: { name } }),
		start: execute ? (id) => void start(id) : undefined,
	};
}

/** useCommands returns the static commands. */
function useCommands(): Command[] {
	const navigate = useNavigate();
	const write = useMay("write");
	const admin = useMay("admin");
	return useMemo(() => {
		const go = (to: string, search?: Record<string, string>) => () => void navigate({ to, search });
		const list: Command[] = navItems.map((place) => ({
			id: place.to,
			group: "Go to",
			name: place.name,
			icon: place.icon,
			run: go(place.to),
		}));
		list.push({ id: "members", group: "Go to", name: "Members", icon: MembersIcon, run: go("/settings/members") });
		list.push({ id: "usage", group: "Go to", name: "Plan and usage", icon: ChartIcon, run: go("/settings/usage") });
		if (admin) list.push({ id: "audit", group: "Go to", name: "Audit log", icon: LogIcon, run: go("/settings/audit") });
		if (write)
			list.push({ id: "new-workflow", group: "Create", name: "New workflow", run: go("/workflows", { new: "1" }) });
		if (write)
			list.push({ id: "new-webhook", group: "Create", name: "New webhook", run: go("/webhooks", { new: "1" }) });
		if (write)
			list.push({ id: "new-secret", group: "Create", name: "New secret", run: go("/secrets", { new: "secret" }) });
		if (write) list.push({ id: "new-table", group: "Create", name: "New table", run: go("/tables", { new: "table" }) });
		if (admin) list.push({ id: "new-key", group: "Create", name: "New API key", run: go("/keys", { new: "1" }) });
		return list;
	}, [navigate, write, admin]);
}
