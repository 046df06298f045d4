import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { currentNode, useProblemCount } from "@/pages/builder/canvas/current";
import { placeToAdd } from "@/pages/builder/command/edit";
import { NodeMenu } from "@/pages/builder/command/menu";
import { graphOf, useDocument, useEditor, useEditorState, useReadOnly, useSelection } from "@/pages/builder/state";
import { actionIcon, frameWords, triggerWords } from "@/shared/canvas";
import { triggerIcon, triggerName } from "@/shared/triggers";
import { find, pathName, title } from "@/shared/workflow/model";
import { Button, IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { ChevronDownIcon, ChevronRightIcon, MoreIcon, PlusIcon, WarningIcon } from "@/ui/icons";
import { type Row, rowsOf, treeMove } from "./rows";

const words = {
	name: triggerName,
	trigger: triggerWords,
	frame: (step: Parameters<typeof frameWords>[0]) => frameWords(step).join(" · "),
};

/** Outline shows the workflow as a tree, with the same operations as the canvas. */
export function Outline() {
	const editor = useEditor();
	const doc = useDocument();
	const selected = useSelection();
	const readOnly = useReadOnly();
	const current = useEditorState(currentNode);
	const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
	const tree = useRef<HTMLDivElement>(null);
	const rows = useMemo(() => rowsOf(doc, closed, words), [doc, closed]);
	const focus = rows.some((row) => row.node === current) ? current : rows[0]?.node;
	useEffect(() => {
		const active = document.activeElement;
		if (!tree.current?.contains(active) && active !== document.body) return;
		tree.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(focus ?? "")}"]`)?.focus();
	}, [focus]);
	const toggle = (node: string) => {
		const next = new Set(closed);
		if (!next.delete(node)) next.add(node);
		setClosed(next);
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.altKey || event.ctrlKey || event.metaKey || !(event.target as HTMLElement).dataset.node) return;
		const node = focus;
		if (event.key === "Enter" && node !== undefined) editor.reveal(node, null);
		else if (event.key === " " && node !== undefined) editor.select([node]);
		else if (/^(Arrow(Up|Down|Left|Right)|Home|End)$/.test(event.key)) {
			const { go, open, close } = treeMove(rows, node, event.key);
			if (open ?? close) toggle((open ?? close) as string);
			else if (go !== undefined) editor.select(event.shiftKey ? [...selected.filter((one) => one !== go), go] : [go]);
		} else return;
		event.preventDefault();
	};
	return (
		<div data-surface="outline" tabIndex={-1} className="outline-none flex h-full flex-col overflow-y-auto">
			<div className="mx-auto flex w-full max-w-3xl flex-col gap-4 p-4 sm:p-6">
				{!readOnly && (
					<div className="flex gap-2">
						<Button icon={PlusIcon} onClick={() => editor.add({ kind: "step", place: placeToAdd(editor) })}>
							Add step
						</Button>
						<Button icon={PlusIcon} onClick={() => editor.add({ kind: "trigger" })}>
							Add trigger
						</Button>
						<NodeMenu trigger={<IconButton icon={MoreIcon} label="More actions" disabled={selected.length === 0} />} />
					</div>
				)}
				{rows.length === 0 ? (
					<p className="py-8 text-center text-muted">Nothing here yet. What starts this workflow?</p>
				) : (
					<div
						ref={tree}
						role="tree"
						aria-label="Workflow outline"
						aria-multiselectable
						onKeyDown={onKeyDown}
						className="rounded-8 border bg-surface p-1"
					>
						{rows.map((row) => (
							<Item
								key={row.node}
								row={row}
								selected={selected.includes(row.node)}
								focus={row.node === focus}
								onToggle={() => toggle(row.node)}
							/>
						))}
					</div>
				)}
			</div>
		</div>
	);
}

interface ItemProps {
	row: Row;
	selected: boolean;
	focus: boolean;
	onToggle: () => void;
}

function Item({ row, selected, focus, onToggle }: ItemProps) {
	const editor = useEditor();
	const problems = useProblemCount(row.node);
	const Shape = row.trigger ? triggerIcon(row.icon) : actionIcon(row.icon);
	const Twist = row.open ? ChevronDownIcon : ChevronRightIcon;
	return (
		<div className={cx("flex h-9 items-center rounded-6 pr-1", selected ? "bg-accent-soft" : "hover:bg-sunken")}>
			{/* biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys */}
			<div
				role="treeitem"
				data-node={row.node}
				tabIndex={focus ? 0 : -1}
				aria-level={row.depth + 1}
				aria-selected={selected}
				aria-expanded={row.block ? row.open : undefined}
				aria-posinset={row.position}
				aria-setsize={row.siblings}
				onClick={(event) => {
					const more = event.ctrlKey || event.metaKey || event.shiftKey;
					editor.select(more ? [...editor.get().selected.filter((one) => one !== row.node), row.node] : [row.node]);
					if (!more) editor.showDetails();
				}}
				style={{ paddingLeft: 8 + row.depth * 20 }}
				className="flex h-full min-w-0 flex-1 cursor-pointer items-center gap-2 rounded-6 -outline-offset-2"
			>
				{row.block ? (
					<Twist
						className="text-muted"
						onClick={(event) => {
							event.stopPropagation();
							onToggle();
						}}
					/>
				) : (
					<span className="size-4 shrink-0" />
				)}
				<Shape className={row.trigger ? "text-accent" : "text-muted"} />
				<span className="max-w-[45%] shrink-0 truncate font-medium">{row.name}</span>
				<span className="min-w-0 flex-1 truncate text-12 text-muted">
					{row.detail}
					{!row.trigger && <After node={row.node} />}
				</span>
				{problems > 0 && (
					<span className="flex items-center gap-1 text-12 text-failed tabular">
						<WarningIcon size={12} />
						{problems}
						<span className="sr-only">{problems === 1 ? "problem" : "problems"}</span>
					</span>
				)}
			</div>
		</div>
	);
}

/** The predecessors of a step, if they are not simply the row above. */
function After({ node }: { node: string }) {
	const words = useEditorState(({ history }) => {
		const { doc } = history.present;
		const g = graphOf(doc);
		if (g.nodes.get(node)?.step.needs === undefined) return "";
		const names = g.edges
			.filter(({ to }) => to === node)
			.map(({ from, path }) => {
				const step = find(doc.steps, from)?.step;
				const name = step ? title(step) : from;
				return path === undefined ? name : `${name} (${pathName(step, path)})`;
			});
		return names.length === 0 ? " · at the start" : ` · after ${names.join(", ")}`;
	});
	return words;
}
