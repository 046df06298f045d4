import { useCallback, useMemo, useState } from "react";
import { find, isBlock, type Step } from "@/builder/model";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { around, placeOf, roundOf } from "./model/path";
import type { RunRecord } from "./model/record";
import { neighbour, roundsOf } from "./model/rounds";

export type View = "steps" | "graph" | "timeline";

export interface Selection {
	/** A step, a round, or "" for the run as a whole. */
	path: string;
	/** Whether the address says so; otherwise it is what the page begins with. */
	explicit: boolean;
	/** Undefined until one was chosen. */
	tab: string | undefined;
	view: View;
	select: (path: string) => void;
	setTab: (tab: string) => void;
	setView: (view: View) => void;
}

/** The part of the run as a whole, in the address. */
const whole = "-";

/** useSelection keeps in the address what is looked at. A failed run begins at the step that failed. */
export function useSelection(record: RunRecord): Selection {
	const [search, set] = useFilters<"step" | "tab" | "view">();
	const path = search.step === whole ? "" : (search.step ?? record.head?.error?.step_id ?? "");
	const select = useCallback((next: string) => set({ step: next || whole }, { replace: true }), [set]);
	const setTab = useCallback((tab: string) => set({ tab }, { replace: true }), [set]);
	const setView = useCallback((view: View) => set({ view }, { replace: true }), [set]);
	const view = (["steps", "graph", "timeline"] as const).find((one) => one === search.view) ?? "graph";
	return { path, explicit: search.step !== undefined, tab: search.tab, view, select, setTab, setView };
}

/** useOpened are the blocks and rounds that are open in a list. What is selected is never hidden at first. */
export function useOpened(path: string, follow: boolean) {
	const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
	const [followed, setFollowed] = useState("");
	if (follow && path !== followed) {
		setFollowed(path);
		const outer = around(path).filter((one) => !opened.has(one));
		if (outer.length > 0) setOpened(new Set([...opened, ...outer]));
	}
	const turn = useCallback(
		(one: string, open: boolean) =>
			setOpened((old) => {
				const next = new Set(old);
				if (open) next.add(one);
				else next.delete(one);
				return next;
			}),
		[],
	);
	return useMemo(() => ({ has: (one: string) => opened.has(one), opened, turn }), [opened, turn]);
}

/** useRoundKeys steps through the rounds of the loop that is looked at with [ and ]. */
export function useRoundKeys(record: RunRecord, steps: readonly Step[], { path, select }: Selection): void {
	const go = (way: 1 | -1) => {
		const loop = loopAt(steps, path);
		if (!loop) return;
		const next = neighbour(roundsOf(record, loop.path, loop.step), path, way);
		if (next) select(next);
	};
	useShortcut("[", "Previous round of the loop", () => go(-1), "Run");
	useShortcut("]", "Next round of the loop", () => go(1), "Run");
}

/** loopAt is the innermost loop around what is selected, or the first of the run. */
export function loopAt(steps: readonly Step[], path: string): { path: string; step: Step } | undefined {
	const own = placeOf(path).id;
	const self = find(steps, own)?.step;
	if (self && isBlock(self) && !roundOf(path)) return { path, step: self };
	const blocks = around(path).filter((one) => !roundOf(one));
	const inner = blocks.at(-1);
	const step = inner === undefined ? undefined : find(steps, placeOf(inner).id)?.step;
	if (inner !== undefined && step) return { path: inner, step };
	const first = steps.find(isBlock);
	return first && { path: first.id, step: first };
}
