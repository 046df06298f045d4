import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Dialog as Radix } from "radix-ui";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { cx } from "@/ui/class";
import { ChartIcon, type Icon, LogIcon, MembersIcon, PlayIcon, PlusIcon, SearchIcon, WorkflowIcon } from "@/ui/icons";
import { panel, scrim } from "@/ui/overlay";
import { toast } from "@/ui/toast";
import { type Command, rank } from "./commands";
import { places } from "./places";

const icons: Record<Command["group"], Icon> = {
	"Go to": SearchIcon,
	Create: PlusIcon,
	Workflows: WorkflowIcon,
	Run: PlayIcon,
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
	const commands = useCommands();
	const shown = useMemo(() => rank(commands, text), [commands, text]);
	const chosen = shown[Math.min(at, shown.length - 1)];
	const run = (command: Command) => {
		onDone();
		command.run();
	};
	const onKeyDown = (event: KeyboardEvent) => {
		const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
		if (step !== 0 && shown.length > 0) {
			event.preventDefault();
			setAt((Math.min(at, shown.length - 1) + step + shown.length) % shown.length);
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
					placeholder="Go to, create, run…"
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
				{shown.length === 0 && <p className="px-2 py-6 text-center text-muted">Nothing is called “{text}”.</p>}
				{shown.map((command, index) => (
					<Choice
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
		</>
	);
}

interface ChoiceProps {
	id: string;
	command: Command;
	heading: boolean;
	chosen: boolean;
	onPoint: () => void;
	onRun: () => void;
}

function Choice({ id, command, heading, chosen, onPoint, onRun }: ChoiceProps) {
	const Shape = command.icon ?? icons[command.group];
	return (
		<>
			{heading && (
				<p role="presentation" className="px-2 pt-2 pb-1 text-12 font-medium text-muted">
					{command.group}
				</p>
			)}
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: the field above has the keys */}
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
			</div>
		</>
	);
}

function useCommands(): Command[] {
	const navigate = useNavigate();
	const write = useMay("write");
	const execute = useMay("execute");
	const admin = useMay("admin");
	const { data } = useQuery({
		queryKey: ["workflows", "palette"],
		queryFn: ({ signal }) => got(api.GET("/v1/workflows", { params: { query: { limit: 100 } }, signal })),
	});
	return useMemo(() => {
		const go = (to: string, search?: Record<string, string>) => () => void navigate({ to, search });
		const list: Command[] = places.map((place) => ({
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
		if (admin) list.push({ id: "new-key", group: "Create", name: "New API key", run: go("/keys", { new: "1" }) });
		for (const { id, name } of data?.data ?? [])
			list.push({ id, group: "Workflows", name, run: () => void navigate({ to: "/workflows/$id", params: { id } }) });
		if (execute) {
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
			for (const { id, name } of data?.data ?? [])
				list.push({ id: `run-${id}`, group: "Run", name: `Run ${name}`, run: () => void start(id) });
		}
		return list;
	}, [data, navigate, write, execute, admin]);
}
