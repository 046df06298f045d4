import { lazy, Suspense, useCallback, useState } from "react";
import { cx } from "@/ui/class";
import { Sheet } from "@/ui/dialog";
import { Skeleton } from "@/ui/states";
import { useWidth } from "@/ui/width";
import { Detail, useDetailTitle } from "./detail/detail";
import type { PanesProps } from "./props";
import type { View } from "./selection";
import { StepTree } from "./step-tree";
import { Timeline } from "./timeline";

// Phones only show the list, so they do not load the graph.
const Graph = lazy(() => import("./graph"));

type Room = "narrow" | "medium" | "wide" | "widest";

/** Panes shows the steps, the graph and the details, as many side by side as fit. */
export function Panes(props: PanesProps) {
	const [width, box] = useWidth<HTMLDivElement>();
	const room = width === undefined ? undefined : roomOf(width);
	return (
		<div ref={box} className="flex min-h-0 flex-1">
			{room === "narrow" && <NarrowLayout {...props} />}
			{room !== undefined && room !== "narrow" && <WideLayout {...props} room={room} />}
		</div>
	);
}

function roomOf(width: number): Room {
	return width < 640 ? "narrow" : width < 1000 ? "medium" : width < 1200 ? "wide" : "widest";
}

function NarrowLayout(props: PanesProps) {
	const { selection, record, doc } = props;
	const [open, setOpen] = useState(selection.explicit);
	const title = useDetailTitle(record, doc.steps, selection.path);
	const { select } = selection;
	const show = useCallback(
		(path: string) => {
			select(path);
			setOpen(true);
		},
		[select],
	);
	return (
		<>
			<StepTree {...props} onOpen={show} className="flex-1 bg-surface" />
			<Sheet open={open} onOpenChange={setOpen} title={title} width={480}>
				<div className="-m-6 flex h-[calc(100%+48px)] flex-col">
					<Detail {...props} bare />
				</div>
			</Sheet>
		</>
	);
}

const views: { value: View; name: string }[] = [
	{ value: "steps", name: "Steps" },
	{ value: "graph", name: "Graph" },
	{ value: "timeline", name: "Timeline" },
];

function WideLayout(props: PanesProps & { room: Exclude<Room, "narrow"> }) {
	const { room, selection } = props;
	const three = room !== "medium";
	const offered = three ? views.slice(1) : views;
	const view = offered.find((one) => one.value === selection.view)?.value ?? "graph";
	return (
		<>
			{three && (
				<StepTree
					{...props}
					onOpen={selection.select}
					className={cx("shrink-0 border-r bg-surface", room === "widest" ? "w-80" : "w-64")}
				/>
			)}
			<section aria-label="View of the run" className="flex min-w-0 flex-1 flex-col">
				<ViewSwitch offered={offered} value={view} onChange={selection.setView} />
				{view === "graph" && (
					<Suspense fallback={<Skeleton className="m-4 h-64" />}>
						<Graph {...props} />
					</Suspense>
				)}
				{view === "timeline" && <Timeline {...props} />}
				{view === "steps" && <StepTree {...props} onOpen={selection.select} className="min-h-0 flex-1 bg-surface" />}
			</section>
			<aside
				aria-label="Details"
				className={cx("flex shrink-0 flex-col border-l bg-surface", room === "widest" ? "w-100" : "w-88")}
			>
				<Detail {...props} />
			</aside>
		</>
	);
}

function ViewSwitch({
	offered,
	value,
	onChange,
}: {
	offered: typeof views;
	value: View;
	onChange: (view: View) => void;
}) {
	return (
		<div role="group" aria-label="View" className="flex h-10 shrink-0 items-center gap-1 border-b bg-surface px-3">
			{offered.map((one) => (
				<button
					key={one.value}
					type="button"
					aria-pressed={one.value === value}
					onClick={() => onChange(one.value)}
					className="h-7 rounded-6 px-2.5 font-medium text-muted hover:text-text aria-pressed:bg-sunken aria-pressed:text-text"
				>
					{one.name}
				</button>
			))}
		</div>
	);
}
