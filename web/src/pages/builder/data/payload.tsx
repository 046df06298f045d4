import { useDocument } from "@/pages/builder/state";
import { AttachFiles } from "@/shared/files/attach-files";
import type { Started } from "@/shared/files/attachment";
import { LostFiles } from "@/shared/files/lost-files";
import { triggerInfo } from "@/shared/triggers";
import { useReplayState } from "../replay/store";
import { useRun } from "./queries";
import type { Sample } from "./sample";
import { SampleEditor } from "./sample-editor";
import { useDataRun } from "./use-data";
import { useSampleInUse, useSamples } from "./use-samples";

/** useNextSample returns what the next draft run starts with: the sample in use, or else an example. */
export function useNextSample(): Sample {
	const used = useSampleInUse();
	const choices = useSamples();
	return used ?? choices[0]?.sample ?? { payload: {} };
}

/** PayloadEditor edits what the next draft run starts with. */
export function PayloadEditor() {
	const [{ attached }, replay] = useReplayState();
	const started = useRun(useDataRun()).data?.trigger;
	const sample = useNextSample();
	const choices = useSamples();
	const { triggers } = useDocument();
	const trigger = triggers.find(({ id }) => id === sample.trigger);
	return (
		<div className="flex min-h-36 flex-1 flex-col gap-2">
			<span className="font-medium">Starts with</span>
			<SampleEditor
				choices={choices}
				value={sample}
				onChange={(next) => next && replay.set({ sample: next })}
				call={trigger !== undefined && triggerInfo(trigger.type).called === true}
				height="fill"
			/>
			<LostFiles payload={sample.payload} earlier={started as Started | undefined} />
			<AttachFiles attached={attached} onChange={(attached) => replay.set({ attached })} />
		</div>
	);
}
