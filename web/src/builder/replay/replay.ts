import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { find, isObject, type Json, pin, title, unpin } from "@/builder/model";
import { type Editor, useEditor } from "@/builder/state";
import { gather, pathFor, type RunData } from "../data/gather";
import { useRun } from "../data/queries";
import { useDataRun } from "../data/use-data";
import { draftOf, runDraft, testStep } from "../data/wire";
import { useFollowed } from "./follower";
import { type Replay, useReplayState } from "./store";

export interface Replaying {
	/** Runs the whole draft with the payload that was chosen, else with that of the last run. */
	run(): void;
	testStep(id: string): void;
	/** Pins the output that a step had last, in its test or else in the run that is looked at; unpins a pinned one. */
	pinStep(id: string): void;
	readonly running: boolean;
}

/** useReplay is what can be tried out with the open document. */
export function useReplay(): Replaying {
	const editor = useEditor();
	const [state, replay] = useReplayState();
	const client = useQueryClient();
	const read = useRun(useDataRun()).data as RunData | undefined;
	const followed = useFollowed();
	const running = state.starting || (followed !== null && !followed.ended);
	return useMemo(() => {
		// Gathered when something is done, so that typing draws nothing again here.
		const now = () =>
			gather({ doc: editor.doc, run: read ?? null, outputOf: () => undefined, chosen: replay.get().chosen });
		return {
			running,
			run: () => {
				const payload = replay.get().payload ?? read?.trigger.payload ?? {};
				void startDraft(editor, replay, payload).then((started) => {
					if (started) void client.invalidateQueries({ queryKey: ["runs", "recent"] });
				});
			},
			testStep: (id) => {
				const path = pathFor(now(), editor.doc, id) ?? id;
				void startTest(editor, replay, id, path, read?.id ?? null);
			},
			pinStep: (id) => togglePin(editor, id, lastOutput(replay, id) ?? now().data.outputs?.[id]),
		};
	}, [editor, replay, client, read, running]);
}

/** Starts a run of the document as it is, saved or not, and draws it. */
export async function startDraft(editor: Editor, replay: Replay, payload: Json): Promise<boolean> {
	if (replay.get().starting) return false;
	editor.test(true);
	replay.set({ starting: true, refusal: null, tab: "run" });
	try {
		const run = await runDraft(editor.id, draftOf(editor.doc, editor.get().stored.doc.pinned), payload);
		replay.draw(run.id);
		editor.say("The draft runs.");
		return true;
	} catch (refusal) {
		replay.set({ refusal });
		return false;
	} finally {
		replay.set({ starting: false });
	}
}

/** Executes one step of the document, with pins and the data of a run. */
export async function startTest(
	editor: Editor,
	replay: Replay,
	id: string,
	path: string,
	run: string | null,
): Promise<void> {
	const step = find(editor.doc.steps, id)?.step;
	if (!step || replay.get().tests[id]?.state === "running") return;
	editor.select([id]);
	editor.test(true);
	const at = Date.now();
	replay.set({ tab: "test" });
	replay.setTest(id, { state: "running", at });
	try {
		const result = await testStep(editor.id, path, draftOf(editor.doc, editor.get().stored.doc.pinned), run);
		replay.setTest(id, { state: "done", result, at });
		editor.say(`${title(step)}: ${result.status}.`);
	} catch (error) {
		replay.setTest(id, { state: "refused", error, at });
	}
}

function lastOutput(replay: Replay, id: string): Json | undefined {
	const result = replay.get().tests[id]?.result;
	return result?.status === "succeeded" ? (result.output as Json) : undefined;
}

function togglePin(editor: Editor, id: string, output: Json | undefined): void {
	if (editor.doc.pinned[id] !== undefined) {
		editor.apply((doc) => unpin(doc, [id]), { keep: true, say: "Unpinned." });
	} else if (isObject(output)) {
		editor.apply((doc) => pin(doc, id, output), { keep: true, say: "Pinned." });
	} else {
		editor.apply((doc) => ({ doc, select: [], refused: "There is no output to pin yet. Test the step first." }), {
			keep: true,
		});
	}
}
