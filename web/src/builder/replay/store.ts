import { useSyncExternalStore } from "react";
import type { Json } from "@/builder/model";
import { type Editor, useEditor } from "@/builder/state";
import type { Tested } from "../data/wire";
import { type Heard, silence } from "./heard";

/** A step that was tried out, or is just now. */
export interface StepTest {
	readonly state: "running" | "done" | "refused";
	readonly result?: Tested;
	readonly error?: unknown;
	/** When it was asked for. */
	readonly at: number;
}

export interface ReplayState {
	/** The run that is drawn on the canvas. */
	readonly run: string | null;
	/** What its stream has told. */
	readonly heard: Heard;
	/** Whether a draft run is being started. */
	readonly starting: boolean;
	/** Why the last one was not. */
	readonly refusal: unknown;
	/** The rounds that were chosen, by the path of their loop. */
	readonly chosen: Readonly<Record<string, number>>;
	readonly tests: Readonly<Record<string, StepTest>>;
	/** What the next draft run is started with; undefined until somebody chose. */
	readonly payload: Json | undefined;
	readonly tab: "test" | "run" | "data";
}

/** What was tried out with one open document. It is gone with the page. */
export class Replay {
	private state: ReplayState = {
		run: null,
		heard: silence,
		starting: false,
		refusal: null,
		chosen: {},
		tests: {},
		payload: undefined,
		tab: "test",
	};
	private readonly watchers = new Set<() => void>();

	readonly get = (): ReplayState => this.state;

	readonly watch = (tell: () => void): (() => void) => {
		this.watchers.add(tell);
		return () => this.watchers.delete(tell);
	};

	set(patch: Partial<ReplayState>): void {
		this.state = { ...this.state, ...patch };
		for (const tell of this.watchers) tell();
	}

	setTest(id: string, test: StepTest): void {
		this.set({ tests: { ...this.state.tests, [id]: test } });
	}

	/** Draws a run; null draws none. */
	draw(run: string | null): void {
		this.set({ run, heard: silence, chosen: {} });
	}

	choose(loop: string, round: number): void {
		this.set({ chosen: { ...this.state.chosen, [loop]: round } });
	}
}

const replays = new WeakMap<Editor, Replay>();

/** The replay of a document, made when it is first asked for. */
export function replayOf(editor: Editor): Replay {
	const known = replays.get(editor);
	if (known) return known;
	const made = new Replay();
	replays.set(editor, made);
	return made;
}

export function useReplayState(): [ReplayState, Replay] {
	const replay = replayOf(useEditor());
	return [useSyncExternalStore(replay.watch, replay.get), replay];
}
