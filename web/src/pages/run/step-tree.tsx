import { type CSSProperties, type KeyboardEvent, memo, useEffect, useMemo, useRef } from "react";
import { actionIcon } from "@/shared/canvas/icons";
import { title } from "@/shared/workflow/model";
import { cx } from "@/ui/class";
import { ChevronDownIcon, ChevronRightIcon, PlayIcon } from "@/ui/icons";
import { StatusIcon } from "@/ui/status";
import { Duration } from "@/ui/time";
import { type VirtualHandle, VirtualList } from "@/ui/virtual";
import { HandledMark } from "./handled";
import type { Outcomes } from "./model/outcome";
import { tally } from "./model/rounds";
import { move, type Row, rowOutcome, rowsOf, type StepRow } from "./model/rows";
import type { PanesProps } from "./props";
import { useExpanded } from "./selection";
import { useTotal } from "./use-run";

export interface StepTreeProps extends PanesProps {
	onOpen: (path: string) => void;
	className?: string;
}

/** StepTree lists the steps of a run. Loops expand into rounds, and rounds into steps. */
export function StepTree({ run, record, outcomes, doc, selection, onOpen, className }: StepTreeProps) {
	const { path } = selection;
	const opened = useExpanded(path, true);
	const rows = useMemo(() => rowsOf(record, doc.steps, opened.has), [record, record.version, doc.steps, opened]);
	const flat = rows.every((row) => row.open === undefined);
	const { list, id, at, onKeyDown } = useTreeKeys(rows, path, onOpen, opened.turn);
	return (
		<section aria-label="Steps" className={cx("flex min-h-0 flex-col", className)}>
			<button
				type="button"
				aria-pressed={path === ""}
				onClick={() => onOpen("")}
				className="flex h-10 shrink-0 items-center gap-2 border-b px-3 text-left font-medium -outline-offset-2 hover:bg-sunken/60 aria-pressed:bg-accent-soft"
			>
				<PlayIcon className="text-muted" />
				Run and payload
			</button>
			{rows.length === 0 ? (
				<p className="p-4 text-muted">This version has no steps.</p>
			) : (
				<VirtualList
					ref={list}
					items={rows}
					rowHeight={32}
					itemKey={(row) => row.path}
					role="tree"
					label="Steps"
					active={at < 0 ? undefined : id(path)}
					onKeyDown={onKeyDown}
					className="min-h-0 flex-1 -outline-offset-2"
				>
					{(row, _, style) => (
						<TreeRow
							run={run}
							row={row}
							record={record}
							outcomes={outcomes}
							id={id(row.path)}
							top={style.top as number}
							selected={row.path === path}
							flat={flat}
							onOpen={onOpen}
							onTurn={opened.turn}
						/>
					)}
				</VirtualList>
			)}
		</section>
	);
}

/** useTreeKeys handles keyboard navigation and keeps the selected row in view. */
export function useTreeKeys(
	rows: readonly Row[],
	path: string,
	onOpen: (path: string) => void,
	turn: (path: string, open: boolean) => void,
) {
	const list = useRef<VirtualHandle>(null);
	const id = (one: string) => `step-${one}`;
	const at = useMemo(() => rows.findIndex((row) => row.path === path), [rows, path]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: rows move while a run is in progress, but the scroll position should not
	useEffect(() => {
		if (at >= 0) list.current?.scrollTo(at);
	}, [path]);
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.altKey || event.ctrlKey || event.metaKey) return;
		const next = move(rows, at, event.key);
		if (!next) return;
		event.preventDefault();
		if ("to" in next) onOpen(next.to);
		else if ("open" in next) turn(next.open, true);
		else turn(next.close, false);
	};
	return { list, id, at, onKeyDown };
}

interface RowProps {
	run: string;
	row: Row;
	record: PanesProps["record"];
	outcomes: Outcomes;
	id: string;
	top: number;
	selected: boolean;
	/** Nothing is expandable, so no space is reserved for chevrons. */
	flat: boolean;
	onOpen: (path: string) => void;
	onTurn: (path: string, open: boolean) => void;
}

const TreeRow = memo(function TreeRow({
	run,
	row,
	record,
	outcomes,
	id,
	top,
	selected,
	flat,
	onOpen,
	onTurn,
}: RowProps) {
	const style: CSSProperties = {
		position: "absolute",
		top,
		left: 0,
		right: 0,
		height: 32,
		paddingLeft: 8 + row.depth * 14,
	};
	const status = rowOutcome(row, outcomes);
	const handled = outcomes.handled.get(row.path);
	return (
		// biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
		<div
			id={id}
			role="treeitem"
			aria-level={row.depth + 1}
			aria-selected={selected}
			aria-expanded={row.open}
			tabIndex={-1}
			onClick={() => onOpen(row.path)}
			style={style}
			className={cx(
				"flex cursor-pointer items-center gap-2 border-l-2 pr-3",
				selected ? "border-accent bg-accent-soft" : "border-transparent hover:bg-sunken/60",
			)}
		>
			{!flat && <ExpandButton row={row} onTurn={onTurn} />}
			<span className="flex w-4 shrink-0 justify-center">
				{status ? (
					<StatusIcon status={status} label={isHandled(row) ? "Failed, and the run went on" : undefined} />
				) : (
					<NotStartedIcon row={row} />
				)}
			</span>
			<span className={cx("min-w-0 flex-1 truncate", !status && "text-muted", row.kind === "round" && "tabular")}>
				{row.kind === "round" ? `Round ${row.round.index + 1}` : title(row.step)}
			</span>
			{handled !== undefined && <HandledMark count={handled} />}
			<span className="shrink-0 text-12 text-muted tabular">
				{row.kind === "step" && row.rounds && row.head ? (
					<LoopTally run={run} row={row} record={record} />
				) : (
					<RowDuration row={row} />
				)}
			</span>
		</div>
	);
});

export function ExpandButton({ row, onTurn }: Pick<RowProps, "row" | "onTurn">) {
	if (row.open === undefined) return <span className="w-4 shrink-0" />;
	const Chevron = row.open ? ChevronDownIcon : ChevronRightIcon;
	return (
		<button
			type="button"
			tabIndex={-1}
			aria-hidden="true"
			onClick={(event) => {
				event.stopPropagation();
				onTurn(row.path, !row.open);
			}}
			className="-m-1 flex size-6 shrink-0 items-center justify-center rounded-6 text-muted hover:text-text"
		>
			<Chevron size={12} />
		</button>
	);
}

function isHandled(row: Row): boolean {
	return row.kind === "step" && row.head?.status === "failed" && row.step.on_error === "continue";
}

function NotStartedIcon({ row }: { row: Row }) {
	const Shape = actionIcon(row.kind === "step" ? (row.step.uses ?? (row.step.repeat ? "repeat" : "foreach")) : "");
	return <Shape size={14} className="text-muted" aria-label="Not started" role="img" aria-hidden={undefined} />;
}

export function LoopTally({ run, row, record }: { run: string; row: StepRow; record: PanesProps["record"] }) {
	const total = useTotal(run, record, row.path, row.step);
	return row.rounds ? tally(row.rounds, total) : null;
}

function RowDuration({ row }: { row: Row }) {
	if (row.kind === "round") {
		const { started, finished } = row.round;
		if (finished === undefined) return <Duration since={new Date(started).toISOString()} />;
		return <Duration ms={finished - started} />;
	}
	const { head } = row;
	if (!head || head.status === "skipped") return null;
	return <Duration ms={head.duration_ms} since={head.finished_at ? null : head.started_at} />;
}
