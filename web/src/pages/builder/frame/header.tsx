import { useMay } from "@/api/session";
import { useReplay } from "@/pages/builder/replay/replay";
import {
	useEditor,
	useEditorState,
	useProblemTotal,
	useReadOnly,
	useUndo,
	useWarnings,
	type View,
} from "@/pages/builder/state";
import { keyLabels } from "@/shell/keys";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { ChevronLeftIcon, ClockIcon, icon, PlayIcon, SettingsIcon, WarningIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { KeysButton } from "./keys";
import { Save } from "./save";
import { StateSwitch } from "./state-switch";

const UndoIcon = icon("M6 3 3 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6");
const RedoIcon = icon("m10 3 3 3-3 3M13 6H6.5a3.5 3.5 0 0 0 0 7H10");

/** Header shows the name of the workflow and the actions on the whole workflow. */
export function Header({ narrow = false }: { narrow?: boolean }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const { canUndo, canRedo } = useUndo();
	const { run, running } = useReplay();
	// Running unsaved changes requires both scopes.
	const mayWrite = useEditorState((state) => state.mayWrite);
	const mayRun = useMay("execute") && mayWrite;
	return (
		<header className="flex min-h-12 shrink-0 flex-wrap items-center gap-2 border-b bg-surface py-1 pr-3 pl-2">
			<Link to="/workflows" aria-label="All workflows" className="rounded-6 p-2 !text-muted hover:bg-sunken">
				<ChevronLeftIcon />
			</Link>
			<Name />
			<State />
			<span className="flex-1" />
			<div className="flex items-center">
				<IconButton icon={UndoIcon} label="Undo" disabled={readOnly || !canUndo} onClick={() => editor.undo()} />
				<IconButton icon={RedoIcon} label="Redo" disabled={readOnly || !canRedo} onClick={() => editor.redo()} />
			</div>
			<Views />
			<ProblemsButton />
			<VersionsButton />
			<KeysButton />
			{narrow && <IconButton icon={SettingsIcon} label="Workflow settings" onClick={() => editor.reveal(null, null)} />}
			{mayRun && (
				<Button icon={PlayIcon} busy={running} onClick={run} title={`Run (${keyLabels("Mod+Enter").join("+")})`}>
					Run
				</Button>
			)}
			<StateSwitch />
			<Save />
		</header>
	);
}

function Name() {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const name = useEditorState((state) => state.history.present.name);
	return (
		<h1 className="min-w-0 shrink">
			<input
				type="text"
				aria-label="Workflow name"
				value={name}
				title={name}
				readOnly={readOnly}
				autoComplete="off"
				maxLength={200}
				onChange={(event) => editor.setName(event.target.value)}
				onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
				style={{ width: `${Math.max(12, Math.min(48, name.length + 3))}ch` }}
				className="h-8 max-w-full min-w-0 truncate rounded-6 border border-transparent bg-transparent px-2 text-14 font-semibold hover:border-border focus:border-control"
			/>
		</h1>
	);
}

const states = { active: "good", paused: "warn", draft: "neutral" } as const;

function State() {
	const { state, version } = useEditorState((now) => now.about);
	return (
		<span className="hidden items-center gap-2 sm:flex">
			<Badge tone={states[state]}>{state === "active" ? "Active" : state === "paused" ? "Paused" : "Draft"}</Badge>
			<span className="text-12 text-muted tabular">v{version}</span>
		</span>
	);
}

const views: readonly { value: View; label: string }[] = [
	{ value: "canvas", label: "Canvas" },
	{ value: "outline", label: "Outline" },
	{ value: "yaml", label: "YAML" },
];

function Views() {
	const editor = useEditor();
	const view = useEditorState((state) => state.view);
	return (
		<fieldset className="flex rounded-8 bg-sunken p-0.5">
			<legend className="sr-only">View</legend>
			{views.map(({ value, label }) => (
				<button
					key={value}
					type="button"
					aria-pressed={view === value}
					onClick={() => editor.show(value)}
					className={cx(
						"h-7 rounded-6 px-2.5 text-12 font-medium",
						view === value ? "border bg-surface text-text" : "border border-transparent text-muted hover:text-text",
					)}
				>
					{label}
				</button>
			))}
		</fieldset>
	);
}

function ProblemsButton() {
	const editor = useEditor();
	const side = useEditorState((state) => state.side);
	const problems = useProblemTotal();
	const warnings = useWarnings().length;
	const open = side === "problems";
	const count = problems || warnings;
	const word = problems || !warnings ? "problem" : "warning";
	return (
		<Button
			kind="quiet"
			aria-pressed={open}
			onClick={() => editor.open(open ? "settings" : "problems")}
			className={cx("!px-2", open && "bg-sunken", problems > 0 ? "!text-failed" : warnings > 0 && "!text-waiting")}
			title="Problems"
		>
			<WarningIcon />
			<span className="tabular">{count}</span>
			<span className="sr-only">{count === 1 ? word : `${word}s`}</span>
		</Button>
	);
}

function VersionsButton() {
	const editor = useEditor();
	const open = useEditorState((state) => state.side === "versions");
	return (
		<IconButton
			icon={ClockIcon}
			label="Versions"
			aria-pressed={open}
			className={open ? "bg-sunken" : undefined}
			onClick={() => editor.open(open ? "settings" : "versions")}
		/>
	);
}
