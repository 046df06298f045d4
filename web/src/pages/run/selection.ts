import { useCallback, useMemo, useState } from "react";
import { find, isBlock, type Step } from "@/shared/workflow/model";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { ancestors, parsePath, parseRound } from "./model/path";
import type { RunRecord } from "./model/record";
import { adjacentRound, roundsOf } from "./model/rounds";

export type View = "steps" | "graph" | "timeline";

export interface Selection {
	/** A step, a round, or "" for the whole run. */
	path: string;
	/** Whether the URL names it; otherwise it is the default selection. */
	explicit: boolean;
	/** Undefined until a tab is selected. */
	tab: string | undefined;
	view: View;
	/** select selects a step, on the given tab or the current one. */
	select: (path: string, tab?: string) => void;
	setTab: (tab: string) => void;
	setView: (view: View) => void;
}

/** Represents the whole run in the URL. */
const wholeRun = "-";

/** useSelection keeps the selection in the URL. A failed run starts with the failed step selected. */
export function useSelection(record: RunRecord): Selection {
	const [search, set] = useFilters<"step" | "tab" | "view">();
	const path = search.step === wholeRun ? "" : (search.step ?? record.head?.error?.step_id ?? "");
	const select = useCallback(
		(next: string, tab?: string) => set({ step: next || wholeRun, ...(tab && { tab }) }, { replace: true }),
		[set],
	);
	const setTab = useCallback((tab: string) => set({ tab }, { replace: true }), [set]);
	const setView = useCallback((view: View) => set({ view }, { replace: true }), [set]);
	const view = (["steps", "graph", "timeline"] as const).find((one) => one === search.view) ?? "graph";
	return { path, explicit: search.step !== undefined, tab: search.tab, view, select, setTab, setView };
}

/** useExpanded tracks which blocks and rounds are expanded. The ancestors of the selection are expanded initially. */
export function useExpanded(path: string, follow: boolean) {
	const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
	const [followed, setFollowed] = useState("");
	if (follow && path !== followed) {
		setFollowed(path);
		const outer = ancestors(path).filter((one) => !opened.has(one));
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

/** useRoundKeys binds [ and ] to the previous and next round of the selected loop. */
export function useRoundKeys(record: RunRecord, steps: readonly Step[], { path, select }: Selection): void {
	const go = (way: 1 | -1) => {
		const loop = loopAt(steps, path);
		if (!loop) return;
		const next = adjacentRound(roundsOf(record, loop.path, loop.step), path, way);
		if (next) select(next);
	};
	useShortcut("[", "Previous round of the loop", () => go(-1), "Run");
	useShortcut("]", "Next round of the loop", () => go(1), "Run");
}

/** loopAt returns the innermost loop around the selection, or the first loop of the run. */
export function loopAt(steps: readonly Step[], path: string): { path: string; step: Step } | undefined {
	const own = parsePath(path).id;
	const self = find(steps, own)?.step;
	if (self && isBlock(self) && !parseRound(path)) return { path, step: self };
	const blocks = ancestors(path).filter((one) => !parseRound(one));
	const inner = blocks.at(-1);
	const step = inner === undefined ? undefined : find(steps, parsePath(inner).id)?.step;
	if (inner !== undefined && step) return { path: inner, step };
	const first = steps.find(isBlock);
	return first && { path: first.id, step: first };
}
