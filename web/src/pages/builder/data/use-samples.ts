import { useDocument, useEditor, useEditorState } from "@/pages/builder/state";
import { triggerInfo } from "@/shared/triggers";
import { isObject, isServiceTrigger } from "@/shared/workflow/model";
import { relativeTime } from "@/ui/time";
import { useReplayState } from "../replay/store";
import type { RunData } from "./gather";
import { useHookRequests, useRun, useServiceTrigger } from "./queries";
import { pinnedSample, type Sample, sampleInUse, sampleOfCall } from "./sample";
import { useDataRun } from "./use-data";

export interface SampleChoice {
	readonly value: string;
	readonly label: string;
	readonly sample: Sample;
}

export const testOutcome = "test";

/** useSamples returns the data that a run can start with: of the last run, pinned, and of calls; with `only`, that of one trigger. */
export function useSamples(only?: string): SampleChoice[] {
	const doc = useDocument();
	const editor = useEditor();
	const stored = useEditorState((state) => state.stored.doc.triggers);
	const run = useRun(useDataRun()).data as RunData | undefined;
	const triggers = doc.triggers.filter(({ id }) => only === undefined || id === only);
	const hook = triggers.find((one) => triggerInfo(one.type).called && stored.some((saved) => saved.id === one.id));
	const calls = useHookRequests(editor.id, hook?.id ?? null) ?? [];
	const type = triggers.find((one) => isServiceTrigger(one.type))?.type ?? "";
	const service = useServiceTrigger(type).data;
	const last = sampleInUse(undefined, { ...doc, pinned: {} }, run)?.sample;
	return [
		...triggers.flatMap(({ id }): SampleChoice[] => {
			const sample = pinnedSample(doc, id);
			return sample ? [{ value: `pin ${id}`, label: `Pinned for ${id}`, sample }] : [];
		}),
		...(last && (only === undefined || last.trigger === only)
			? [{ value: "last", label: "Data of the last run", sample: last }]
			: []),
		...(hook
			? calls
					.filter((call) => call.payload !== null)
					.map((call) => ({
						value: call.id,
						label: `${call.outcome === testOutcome ? "Test call" : call.method} ${relativeTime(Date.parse(call.at), Date.now())}`,
						sample: sampleOfCall(hook.id, call),
					}))
			: []),
		...(service && isObject(service.sample)
			? [{ value: "sample", label: `Example: ${service.title}`, sample: { payload: service.sample } }]
			: []),
		{ value: "empty", label: "Empty: {}", sample: { payload: {} } },
	];
}

/** useSampleInUse returns the data that the next run starts with, or undefined if people have to choose it. */
export function useSampleInUse(): Sample | undefined {
	const doc = useDocument();
	const [{ sample }] = useReplayState();
	const run = useRun(useDataRun()).data as RunData | undefined;
	return sampleInUse(sample, doc, run)?.sample;
}
