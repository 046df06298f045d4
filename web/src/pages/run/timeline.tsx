import { type CSSProperties, useLayoutEffect, useMemo, useRef, useState } from "react";
import { title } from "@/shared/workflow/model";
import { cx } from "@/ui/class";
import { type Outcome, statusColor, statuses } from "@/ui/status";
import { duration, useNow } from "@/ui/time";
import { VirtualList } from "@/ui/virtual";
import { type Row, rowOutcome, rowsOf } from "./model/rows";
import { type Segment, segmentsOf, tickLabel, ticks } from "./model/timeline";
import type { PanesProps } from "./props";
import { useExpanded } from "./selection";
import { ExpandButton, useTreeKeys } from "./step-tree";

const rowHeight = 24;

/** Timeline shows when each step ran: attempts as segments, pauses hatched, loops collapsed initially. */
export function Timeline({ record, outcomes, doc, selection }: PanesProps) {
	const { path, select } = selection;
	const opened = useExpanded(path, false);
	const rows = useMemo(
		() => rowsOf(record, doc.steps, opened.has).filter((row) => row.kind === "round" || row.head),
		[record, record.version, doc.steps, opened],
	);
	const { list, at, onKeyDown } = useTreeKeys(rows, path, select, opened.turn);
	const running = record.head?.finished_at === null;
	const now = useNow(running ? 500 : 60_000);
	const [box, width] = useWidth();
	const start = Date.parse(record.head?.started_at ?? "");
	const end = record.head?.finished_at ? Date.parse(record.head.finished_at) : now;
	const scale: Scale = { start, length: Math.max(1, end - start), now };
	const names = width < 420 ? 120 : 176;
	const most = Math.max(2, Math.floor((width - names) / 90));
	const flat = rows.every((row) => row.open === undefined);
	return (
		<div ref={box} className="flex min-h-0 flex-1 flex-col bg-surface">
			<Axis scale={scale} names={names} most={most} />
			<div className="relative flex min-h-0 flex-1 flex-col">
				<Grid scale={scale} names={names} most={most} />
				<VirtualList
					ref={list}
					items={rows}
					rowHeight={rowHeight}
					itemKey={(row) => row.path}
					role="tree"
					label="Timeline of the steps"
					active={at < 0 ? undefined : `time-${path}`}
					onKeyDown={onKeyDown}
					className="min-h-0 flex-1 -outline-offset-2"
				>
					{(row, _, style) => (
						<Bar
							row={row}
							outcome={rowOutcome(row, outcomes)}
							style={style}
							scale={scale}
							names={names}
							flat={flat}
							selected={row.path === path}
							onOpen={select}
							onTurn={opened.turn}
						/>
					)}
				</VirtualList>
			</div>
		</div>
	);
}

interface Scale {
	start: number;
	/** In milliseconds. */
	length: number;
	now: number;
}

function useWidth() {
	const box = useRef<HTMLDivElement>(null);
	const [width, setWidth] = useState(600);
	useLayoutEffect(() => {
		const own = box.current;
		if (!own) return undefined;
		const observer = new ResizeObserver(() => setWidth(own.clientWidth));
		observer.observe(own);
		return () => observer.disconnect();
	}, []);
	return [box, width] as const;
}

function Axis({ scale, names, most }: { scale: Scale; names: number; most: number }) {
	return (
		<div className="flex h-8 shrink-0 items-center border-b pr-4 text-12 text-muted tabular" aria-hidden="true">
			<span style={{ width: names }} className="shrink-0 pl-3">
				Step
			</span>
			<span className="relative h-full flex-1">
				{ticks(scale.length, most).map((at) => (
					<span
						key={at}
						style={{ left: `${(at / scale.length) * 100}%` }}
						className="absolute inset-y-0 flex items-center border-l pl-1 whitespace-nowrap"
					>
						{at / scale.length < 0.85 && tickLabel(at)}
					</span>
				))}
			</span>
		</div>
	);
}

/** Grid extends the ticks of the axis behind the rows. */
function Grid({ scale, names, most }: { scale: Scale; names: number; most: number }) {
	return (
		<div aria-hidden="true" style={{ left: names }} className="pointer-events-none absolute inset-y-0 right-4">
			{ticks(scale.length, most).map((at) => (
				<span
					key={at}
					style={{ left: `${(at / scale.length) * 100}%` }}
					className="absolute inset-y-0 border-l border-border/60"
				/>
			))}
		</div>
	);
}

interface BarProps {
	row: Row;
	outcome: Outcome | undefined;
	style: CSSProperties;
	scale: Scale;
	names: number;
	flat: boolean;
	selected: boolean;
	onOpen: (path: string) => void;
	onTurn: (path: string, open: boolean) => void;
}

function Bar({ row, outcome, style, scale, names, flat, selected, onOpen, onTurn }: BarProps) {
	const segments = rowSegments(row, scale.now);
	const name = row.kind === "round" ? `Round ${row.round.index + 1}` : title(row.step);
	const last = segments.at(-1);
	const took = last && segments[0] ? duration(last.to - segments[0].from) : "";
	return (
		// biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
		<div
			id={`time-${row.path}`}
			role="treeitem"
			aria-level={row.depth + 1}
			aria-selected={selected}
			aria-expanded={row.open}
			aria-label={`${name}, ${outcome ? statuses[outcome].name : "not started"}, ${took}`}
			tabIndex={-1}
			onClick={() => onOpen(row.path)}
			style={style}
			className={cx("flex cursor-pointer items-center pr-4", selected ? "bg-accent-soft" : "hover:bg-sunken/60")}
		>
			<span
				style={{ width: names, paddingLeft: 8 + row.depth * 12 }}
				className="flex shrink-0 items-center gap-1 pr-2 text-12"
			>
				{!(flat && row.open === undefined) && <ExpandButton row={row} onTurn={onTurn} />}
				<span className="truncate" title={name}>
					{name}
				</span>
			</span>
			<span className="relative h-full flex-1">
				{segments.map((segment) => (
					<SegmentBar
						key={`${segment.from} ${segment.wait}`}
						segment={segment}
						outcome={outcome === "rejected" ? outcome : segment.status}
						scale={scale}
					/>
				))}
			</span>
		</div>
	);
}

function rowSegments(row: Row, now: number): Segment[] {
	if (row.kind === "step") {
		if (!row.head) return [];
		const own = segmentsOf(row.head, now);
		if (own.length > 0) return own;
		const at = Date.parse(row.head.started_at);
		return [{ from: at, to: at, status: row.head.status, wait: false, title: "" }];
	}
	const { started, finished, status } = row.round;
	return [{ from: started, to: finished ?? now, status, wait: status === "waiting", title: "" }];
}

/** SegmentBar is at least 2 px wide. */
function SegmentBar({ segment, outcome, scale }: { segment: Segment; outcome: Outcome; scale: Scale }) {
	const { from, to, wait } = segment;
	const colour = statusColor(outcome);
	const share = (ms: number) => `${Math.max(0, Math.min(1, ms / scale.length)) * 100}%`;
	const words = [segment.title, statuses[outcome].name, duration(to - from)].filter(Boolean).join(" · ");
	return (
		<span
			title={words}
			style={{
				left: `min(${share(from - scale.start)}, calc(100% - 2px))`,
				width: `max(2px, ${share(to - from)})`,
				background: wait
					? `repeating-linear-gradient(135deg, ${colour} 0 2px, color-mix(in srgb, ${colour} 15%, transparent) 2px 6px)`
					: colour,
			}}
			className={cx("absolute top-1.5 h-3 rounded-[2px]", outcome === "failed" && "ring-1 ring-failed")}
		/>
	);
}
