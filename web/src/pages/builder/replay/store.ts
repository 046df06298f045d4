import { useStore } from "zustand";
import { createStore } from "zustand/vanilla";
import { type Editor, useEditor } from "@/pages/builder/state";
import type { Attachment } from "@/shared/files/attachment";
import type { Sample } from "../data/sample";
import type { Tested } from "../data/wire";
import { emptyStream, type StreamState } from "./stream-state";

/** A finished or running test of a step. */
export interface StepTest {
	readonly state: "running" | "done" | "failed";
	readonly result?: Tested;
	readonly error?: unknown;
	/** When it was requested. */
	readonly at: number;
}

export interface ReplayState {
	/** The run shown on the canvas. */
	readonly run: string | null;
	/** The events of its stream. */
	readonly stream: StreamState;
	/** Whether a draft run is being started. */
	readonly starting: boolean;
	/** Why the last start failed. */
	readonly startError: unknown;
	/** The selected rounds, by the path of their loop. */
	readonly rounds: Readonly<Record<string, number>>;
	readonly tests: Readonly<Record<string, StepTest>>;
	/** What the next draft run starts with, and what expressions see; undefined until it is chosen. */
	readonly sample: Sample | undefined;
	/** Whether a run was requested that needs a sample first. */
	readonly asking: boolean;
	/** The files that the next draft run starts with. */
	readonly attached: readonly Attachment[];
	readonly tab: "test" | "run" | "data";
}

/** The test state of one open document. It is lost with the page. */
export class Replay {
	readonly store = createStore<ReplayState>(() => ({
		run: null,
		stream: emptyStream,
		starting: false,
		startError: null,
		rounds: {},
		tests: {},
		sample: undefined,
		asking: false,
		attached: [],
		tab: "test",
	}));

	readonly get = (): ReplayState => this.store.getState();

	set(patch: Partial<ReplayState>): void {
		this.store.setState(patch);
	}

	setTest(id: string, test: StepTest): void {
		this.set({ tests: { ...this.get().tests, [id]: test } });
	}

	/** Shows a run; null shows none. */
	draw(run: string | null): void {
		this.set({ run, stream: emptyStream, rounds: {} });
	}

	choose(loop: string, round: number): void {
		this.set({ rounds: { ...this.get().rounds, [loop]: round } });
	}
}

const replays = new WeakMap<Editor, Replay>();

/** The test state of an editor, created on first use. */
export function replayOf(editor: Editor): Replay {
	const known = replays.get(editor);
	if (known) return known;
	const made = new Replay();
	replays.set(editor, made);
	return made;
}

/** Shows a run on the canvas and what the selected step did in it. */
export function showRun(editor: Editor, run: string): void {
	const replay = replayOf(editor);
	replay.draw(run);
	replay.set({ tab: "run" });
	editor.test(true);
}

export function useReplayState(): [ReplayState, Replay] {
	const replay = replayOf(useEditor());
	return [useStore(replay.store), replay];
}
