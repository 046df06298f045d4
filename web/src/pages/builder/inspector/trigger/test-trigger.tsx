import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { useEditor, useEditorState } from "@/pages/builder/state";
import { triggerInfo } from "@/shared/triggers";
import { isServiceTrigger, type Trigger } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { PlayIcon } from "@/ui/icons";
import { ErrorNote } from "@/ui/states";
import type { Sample } from "../../data/sample";
import { SampleEditor } from "../../data/sample-editor";
import { useSamples } from "../../data/use-samples";
import { useReplayState } from "../../replay/store";

/** TestTrigger asks for the data of the trigger, and starts a run of the saved workflow as if it had fired. */
export function TestTrigger({ trigger, changed }: { trigger: Trigger; changed: boolean }) {
	const [open, setOpen] = useState(false);
	const mayExecute = useMay("execute");
	return (
		<div className="flex flex-col items-start gap-2">
			<Button small icon={PlayIcon} disabled={!mayExecute} onClick={() => setOpen(true)}>
				Test this trigger…
			</Button>
			<p className="text-12 text-muted">Starts a run as if the trigger had fired, with data that you choose.</p>
			{open && <TestDialog trigger={trigger} changed={changed} onClose={() => setOpen(false)} />}
		</div>
	);
}

/** The server makes up the data of these types. */
const hasExample = (type: string) => type === "schedule" || type === "event" || isServiceTrigger(type);

const example = { value: "example", label: "An example", sample: null };

function TestDialog({ trigger, changed, onClose }: { trigger: Trigger; changed: boolean; onClose: () => void }) {
	const editor = useEditor();
	const dirty = useEditorState((state) => state.dirty);
	const [, replay] = useReplayState();
	const known = useSamples(trigger.id).map((one) => ({ ...one, sample: { ...one.sample, trigger: trigger.id } }));
	const choices = hasExample(trigger.type) ? [example, ...known] : known;
	const [chosen, setChosen] = useState<Sample | null>();
	const sample = chosen === undefined ? (choices[0]?.sample ?? null) : chosen;
	const test = useMutation({
		meta: { quiet: true },
		mutationFn: () =>
			got(
				api.POST("/v1/workflows/{id}/triggers/{trigger_id}/test", {
					params: { path: { id: editor.id, trigger_id: trigger.id } },
					body: bodyOf(sample) as never,
				}),
			),
		onSuccess: (run) => {
			if (sample) replay.set({ sample });
			replay.draw(run.id);
			replay.set({ tab: "run" });
			editor.test(true);
			onClose();
		},
	});
	return (
		<Dialog
			open
			guarded
			onOpenChange={(open) => !open && onClose()}
			title={`Test ${triggerInfo(trigger.type).name}`}
			description={
				dirty || changed
					? "The workflow runs as it was last saved. Its steps have real effects."
					: "The steps of the workflow have real effects."
			}
			onSubmit={() => test.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={test.isPending}>
						Start run
					</Button>
				</>
			}
		>
			<div className="flex flex-col gap-2">
				<span className="font-medium">Start with</span>
				<SampleEditor
					choices={choices}
					value={sample}
					onChange={setChosen}
					call={triggerInfo(trigger.type).called === true}
					height={200}
				/>
				{test.isError && <ErrorNote error={test.error} />}
			</div>
		</Dialog>
	);
}

function bodyOf(sample: Sample | null) {
	if (!sample) return {};
	const { payload, headers, query } = sample;
	return { payload, ...(headers && { headers }), ...(query && { query }) };
}
