import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { type Editor, useEditor } from "@/pages/builder/state";
import { type FileMember, keptFiles, type Started } from "@/shared/files/attachment";
import { find, isObject, type Json, pin, title, unpin } from "@/shared/workflow/model";
import { gather, pathFor, type RunData } from "../data/gather";
import { useRun } from "../data/queries";
import { needsSample, type Sample, sampleInUse } from "../data/sample";
import { useDataRun } from "../data/use-data";
import { draftBody, runDraft, testStep } from "../data/wire";
import { useFollowedRun } from "./follower";
import { type Replay, useReplayState } from "./store";

export interface Replaying {
	/** Runs the whole draft with the sample in use, or asks for one if the run needs it. */
	run(): void;
	/** Runs the whole draft with the sample that the panel shows. */
	runWith(sample: Sample): void;
	testStep(id: string): void;
	/** Pins the last output of a step, from its test or the shown run; unpins a pinned one. */
	pinStep(id: string): void;
	readonly running: boolean;
}

/** useReplay returns the actions that test the open document. */
export function useReplay(): Replaying {
	const editor = useEditor();
	const [state, replay] = useReplayState();
	const client = useQueryClient();
	const read = useRun(useDataRun()).data as RunData | undefined;
	const followed = useFollowedRun();
	const running = state.starting || (followed !== null && !followed.ended);
	return useMemo(() => {
		// Evaluated on demand, so that typing does not re-render this.
		const now = () =>
			gather({
				doc: editor.doc,
				run: read ?? null,
				...sampleOf(replay),
				outputOf: () => undefined,
				chosen: replay.get().rounds,
			});
		const runWith = (sample: Sample) => {
			const kept = keptFiles(sample.payload, read?.trigger as Started | undefined);
			void startDraft(editor, replay, sample, kept).then((started) => {
				if (started) void client.invalidateQueries({ queryKey: ["runs", "recent"] });
			});
		};
		return {
			running,
			runWith,
			run: () => {
				const used = sampleInUse(replay.get().sample, editor.doc, read)?.sample;
				if (used || !needsSample(editor.doc)) return runWith(used ?? { payload: {} });
				replay.set({ tab: "run", asking: true });
				editor.test(true);
				editor.announce("Choose what the run starts with.");
			},
			testStep: (id) => {
				const path = pathFor(now(), editor.doc, id) ?? id;
				void startTest(editor, replay, id, path, read?.id ?? null, now().sample);
			},
			pinStep: (id) => togglePin(editor, id, lastOutput(replay, id) ?? now().data.outputs?.[id]),
		};
	}, [editor, replay, client, read, running]);
}

/** Starts a run of the current document, saved or not, and shows it. */
export async function startDraft(
	editor: Editor,
	replay: Replay,
	sample: Sample,
	kept: readonly FileMember[] = [],
): Promise<boolean> {
	if (replay.get().starting) return false;
	editor.test(true);
	replay.set({ starting: true, asking: false, startError: null, tab: "run" });
	try {
		const draft = draftBody(editor.doc, editor.get().stored.doc.pinned);
		const run = await runDraft(editor.id, draft, sample, replay.get().attached, kept);
		replay.draw(run.id);
		editor.announce("The draft is running.");
		return true;
	} catch (startError) {
		replay.set({ startError });
		return false;
	} finally {
		replay.set({ starting: false });
	}
}

/** Executes one step of the document, with pinned data and the data of a run. */
export async function startTest(
	editor: Editor,
	replay: Replay,
	id: string,
	path: string,
	run: string | null,
	sample: Sample | null,
): Promise<void> {
	const step = find(editor.doc.steps, id)?.step;
	if (!step || replay.get().tests[id]?.state === "running") return;
	editor.select([id]);
	editor.test(true);
	const at = Date.now();
	replay.set({ tab: "test" });
	replay.setTest(id, { state: "running", at });
	try {
		const result = await testStep(editor.id, path, draftBody(editor.doc, editor.get().stored.doc.pinned), run, sample);
		replay.setTest(id, { state: "done", result, at });
		editor.announce(`${title(step)}: ${result.status}.`);
	} catch (error) {
		replay.setTest(id, { state: "failed", error, at });
	}
}

function sampleOf(replay: Replay): { sample?: Sample } {
	const { sample } = replay.get();
	return sample ? { sample } : {};
}

function lastOutput(replay: Replay, id: string): Json | undefined {
	const result = replay.get().tests[id]?.result;
	return result?.status === "succeeded" ? (result.output as Json) : undefined;
}

function togglePin(editor: Editor, id: string, output: Json | undefined): void {
	if (editor.doc.pinned[id] !== undefined) {
		editor.apply((doc) => unpin(doc, [id]), { keepSelection: true, announce: "Unpinned." });
	} else if (isObject(output)) {
		editor.apply((doc) => pin(doc, id, output), { keepSelection: true, announce: "Pinned." });
	} else {
		editor.apply((doc) => ({ doc, select: [], rejected: "There is no output to pin yet. Test the step first." }), {
			keepSelection: true,
		});
	}
}
