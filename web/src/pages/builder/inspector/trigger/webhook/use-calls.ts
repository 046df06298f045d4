import { useEffect, useRef } from "react";
import type { Schema } from "@/api/client";
import { useEditor, useEditorState } from "@/pages/builder/state";
import type { Trigger } from "@/shared/workflow/model";
import { callsEvery, useHookRequests, useTriggerStates } from "../../../data/queries";
import { sampleOfCall } from "../../../data/sample";
import { testOutcome } from "../../../data/use-samples";
import { useReplayState } from "../../../replay/store";

export type HookCall = Schema["HookRequest"];

/** How often to look for the call that people wait for. */
const testEvery = 1_000;

/** useListening returns until when a saved trigger accepts a test call. */
export function useListening(trigger: Trigger): string | null {
	const editor = useEditor();
	const state = useTriggerStates(editor.id)?.find((one) => one.id === trigger.id);
	return state?.listening_until ?? null;
}

/** useCalls returns the latest calls of a trigger. A test call that arrives becomes the data in use. */
export function useCalls(trigger: Trigger): readonly HookCall[] | undefined {
	const editor = useEditor();
	const [, replay] = useReplayState();
	const saved = useEditorState((state) => state.stored.doc.triggers.some((one) => one.id === trigger.id));
	const listening = useListening(trigger) !== null;
	const calls = useHookRequests(editor.id, saved ? trigger.id : null, listening ? testEvery : callsEvery);
	const known = useRef<ReadonlySet<string>>(undefined);
	useEffect(() => {
		if (!calls) return;
		const test = known.current && calls.find((call) => call.outcome === testOutcome && !known.current?.has(call.id));
		known.current = new Set(calls.map((call) => call.id));
		if (!test) return;
		if (test.payload !== null) replay.set({ sample: sampleOfCall(trigger.id, test) });
		editor.announce("A test call was received.");
	}, [calls, trigger.id, editor, replay]);
	return calls;
}
