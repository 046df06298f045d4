import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { focusNode } from "@/pages/builder/canvas/use-focus";
import { insert, insertTrigger } from "@/pages/builder/command/edit";
import { type Adding, type Editor, useEditor, useEditorState } from "@/pages/builder/state";
import { actionIcon } from "@/shared/canvas";
import { useIntegrations } from "@/shared/connections/data";
import { IconTile } from "@/shared/mark";
import { triggerIcon } from "@/shared/triggers";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { control } from "@/ui/field";
import { CloseIcon, type Icon, SearchIcon } from "@/ui/icons";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { useActions } from "./actions";
import { adviceFor } from "./advice";
import { type Choice, operationChoices, serviceTriggerChoices, stepChoices, triggerChoices } from "./choices";
import { search } from "./search";

/** Picker is the panel for adding something. */
export function Picker() {
	const adding = useEditorState((state) => state.adding);
	return adding ? <Panel key={JSON.stringify(adding)} adding={adding} /> : null;
}

function Panel({ adding }: { adding: Adding }) {
	const editor = useEditor();
	const actions = useActions();
	const integrations = useIntegrations();
	const [typed, setTyped] = useState("");
	const [at, setAt] = useState(0);
	const list = useId();
	const field = useRef<HTMLInputElement>(null);
	const before = useRef(document.activeElement);
	useEffect(() => field.current?.focus(), []);
	const trigger = adding.kind === "trigger";
	const all = useMemo(
		() =>
			trigger
				? [...triggerChoices, ...serviceTriggerChoices(integrations.data ?? [])]
				: [...stepChoices(actions.data ?? []), ...operationChoices(integrations.data ?? [])],
		[trigger, actions.data, integrations.data],
	);
	const found = useMemo(() => search(all, typed), [all, typed]);
	const advice = trigger ? undefined : adviceFor(typed);
	const close = () => {
		editor.add(null);
		if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
	};
	const pick = (choice: Choice) => {
		const { picks } = choice;
		if (picks.kind === "trigger") insertTrigger(editor, picks.type);
		else if (adding.kind === "step" && picks.kind === "step") insert(editor, picks.step, adding.place);
		// Last, so that the canvas can tell whether something was picked.
		editor.add(null);
		focusAdded(editor);
	};
	/** The group of a choice, above its first one. The types of Stepmill itself need none. */
	const headingOf = (choice: Choice, previous: Choice | undefined) =>
		typed === "" && choice.group !== previous?.group && !triggerChoices.includes(choice) ? choice.group : undefined;
	const onKeyDown = (event: KeyboardEvent) => {
		const choice = found[at];
		if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
		else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
		else if (event.key === "Enter" && choice) pick(choice);
		else if (event.key === "Escape") close();
		else return;
		event.preventDefault();
		event.stopPropagation();
	};
	return (
		<section
			aria-label={trigger ? "Add a trigger" : "Add a step"}
			className="absolute inset-y-3 left-3 z-20 flex w-80 max-w-[calc(100%-24px)] animate-appear flex-col rounded-12 border bg-surface shadow-lift"
		>
			<div className="flex items-center gap-2 px-4 pt-3">
				<h2 className="flex-1 text-14 font-semibold">{headline(adding)}</h2>
				<IconButton icon={CloseIcon} label="Close (Esc)" small className="-mr-1" onClick={close} />
			</div>
			<div className="relative px-4 py-3">
				<SearchIcon className="pointer-events-none absolute top-5 left-6 text-muted" />
				<input
					ref={field}
					type="text"
					role="combobox"
					aria-expanded
					aria-controls={list}
					aria-activedescendant={found[at] ? `${list}-${at}` : undefined}
					aria-label={trigger ? "Search triggers" : "Search actions"}
					placeholder="Search…"
					autoComplete="off"
					value={typed}
					onChange={(event) => {
						setTyped(event.target.value);
						setAt(0);
					}}
					onKeyDown={onKeyDown}
					className={cx(control, "h-8 pl-7")}
				/>
			</div>
			{advice && (
				<p role="status" className="mx-4 mb-3 rounded-6 bg-sunken px-3 py-2 text-12">
					{advice}
				</p>
			)}
			<div id={list} role="listbox" aria-label="Choices" className="min-h-0 flex-1 overflow-y-auto px-2 pb-3">
				{!trigger && actions.isPending && <SkeletonRows label="Loading actions" />}
				{!trigger && actions.isError && <ErrorState error={actions.error} onRetry={() => void actions.refetch()} />}
				{found.map((choice, index) => (
					<Row
						key={choice.key}
						id={`${list}-${index}`}
						choice={choice}
						heading={headingOf(choice, found[index - 1])}
						active={index === at}
						onPick={() => pick(choice)}
					/>
				))}
				{found.length === 0 && all.length > 0 && (
					<p className="px-2 py-6 text-center text-muted">No results for “{typed}”.</p>
				)}
			</div>
		</section>
	);
}

/** A node without required fields gets the focus itself; otherwise its settings do. */
function focusAdded(editor: Editor): void {
	const node = editor.get().selected.at(-1);
	if (node === undefined || editor.get().problems.some((problem) => problem.node === node)) return;
	// It is rendered in the next frame.
	requestAnimationFrame(() =>
		requestAnimationFrame(() => {
			if (document.activeElement === document.body) focusNode(document.querySelector("[data-surface]"), node);
		}),
	);
}

function headline(adding: Adding): string {
	if (adding.kind === "trigger") return "What starts this workflow?";
	switch (adding.place.at) {
		case "end":
			return "What happens first?";
		case "branch":
			return "Add a branch";
		default:
			return "What happens next?";
	}
}

interface RowProps {
	id: string;
	choice: Choice;
	heading?: string;
	active: boolean;
	onPick: () => void;
}

function Row({ id, choice, heading, active, onPick }: RowProps) {
	const row = useRef<HTMLDivElement>(null);
	useEffect(() => {
		if (active) row.current?.scrollIntoView({ block: "nearest" });
	}, [active]);
	return (
		<>
			{heading && (
				<p role="presentation" className="px-2 pt-3 pb-1 text-12 font-medium text-muted first:pt-0">
					{heading}
				</p>
			)}
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: the search field handles the keys */}
			<div
				ref={row}
				id={id}
				role="option"
				tabIndex={-1}
				aria-selected={active}
				onClick={onPick}
				className={cx("flex cursor-pointer items-start gap-3 rounded-8 p-2 hover:bg-sunken", active && "bg-sunken")}
			>
				<IconTile icon={iconOf(choice)} className="border bg-surface text-muted" />
				<span className="min-w-0">
					<span className="block truncate font-medium">{choice.title}</span>
					<span className="line-clamp-2 text-12 text-muted">{choice.summary}</span>
				</span>
			</div>
		</>
	);
}

function iconOf(choice: Choice): Icon {
	return choice.picks.kind === "trigger" ? triggerIcon(choice.icon) : actionIcon(choice.icon);
}
