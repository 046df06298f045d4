import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { useEditor, useEditorState, useReadOnly } from "@/pages/builder/state";
import { isObject, pin, type Trigger, triggerNode } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ErrorNote } from "@/ui/states";
import { timeOfDay } from "@/ui/time";
import { useTriggerStates } from "../../../data/queries";
import { curlLine, pinOf } from "../../../data/sample";
import { useReplayState } from "../../../replay/store";

/** Listen makes the URL of a draft accept a test call, and shows how to make one. */
export function Listen({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const client = useQueryClient();
	const mayWrite = useMay("write");
	const stored = useEditorState((state) => state.stored.doc.triggers.find((one) => one.id === trigger.id));
	const state = useTriggerStates(editor.id)?.find((one) => one.id === trigger.id);
	const path = { id: editor.id, trigger_id: trigger.id };
	const onSettled = () => client.invalidateQueries({ queryKey: ["workflows", editor.id] });
	const listen = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.POST("/v1/workflows/{id}/triggers/{trigger_id}/listen", { params: { path } })),
		onSettled,
	});
	const stop = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.DELETE("/v1/workflows/{id}/triggers/{trigger_id}/listen", { params: { path } })),
		onSettled,
	});
	if (!stored) return <SaveFirst />;
	if (!state?.url || !mayWrite)
		return <p className="text-muted">Only members who can edit the workflow can try the URL.</p>;
	return (
		<div className="flex flex-col gap-3">
			<Curl trigger={stored} url={state.url} />
			{isVerified(stored) && (
				<p className="text-12 text-muted">Calls are verified, so this one needs the signature or credentials too.</p>
			)}
			{stored !== trigger && (
				<p className="text-12 text-muted">Calls are handled by the settings that were last saved.</p>
			)}
			{state.active && (
				<p className="text-muted">The workflow is active. Each call starts a run, and is listed below.</p>
			)}
			{!state.active && state.listening_until !== null && (
				<div role="status" className="flex items-center gap-2 rounded-6 bg-sunken px-3 py-2">
					<span className="min-w-0 flex-1">
						Waiting for a call, until {timeOfDay(Date.parse(state.listening_until))}. It starts no run.
					</span>
					<Button small busy={stop.isPending} onClick={() => stop.mutate()}>
						Stop
					</Button>
				</div>
			)}
			{!state.active && state.listening_until === null && (
				<div className="flex flex-col items-start gap-2">
					<Button small kind="primary" busy={listen.isPending} onClick={() => listen.mutate()}>
						Listen for a test call
					</Button>
					<p className="text-12 text-muted">
						For 5 minutes, the URL accepts one call, although the workflow is not active. Its data is then used here.
					</p>
				</div>
			)}
			<Received trigger={trigger} />
			{(listen.isError || stop.isError) && <ErrorNote error={listen.error ?? stop.error} />}
		</div>
	);
}

function isVerified({ verify }: Trigger): boolean {
	return isObject(verify) && verify.scheme !== "none";
}

function SaveFirst() {
	const editor = useEditor();
	const saving = useEditorState((state) => state.saving);
	const readOnly = useReadOnly();
	return (
		<div className="flex flex-col items-start gap-2">
			<p className="text-muted">The trigger gets its URL when the workflow is saved.</p>
			<Button small busy={saving} disabled={readOnly} onClick={() => void editor.saving.save()}>
				Save and show the URL
			</Button>
		</div>
	);
}

function Curl({ trigger, url }: { trigger: Trigger; url: string }) {
	const [{ sample }] = useReplayState();
	const methods = Array.isArray(trigger.methods) ? trigger.methods : [];
	const line = curlLine(url, String(methods[0] ?? "POST"), sample?.trigger === trigger.id ? sample : undefined);
	return (
		<div className="flex items-center gap-1 rounded-6 border bg-canvas py-0.5 pr-1 pl-2">
			<code className="min-w-0 flex-1 truncate font-mono text-12" title={line}>
				{line}
			</code>
			<CopyButton value={line} label="Copy curl command" />
		</div>
	);
}

/** Received offers to pin the call in use. */
function Received({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const [{ sample }] = useReplayState();
	const node = triggerNode(trigger.id);
	const pinned = useEditorState((state) => state.history.present.doc.pinned[node]);
	if (sample?.trigger !== trigger.id || JSON.stringify(pinned) === JSON.stringify(pinOf(sample))) return null;
	return (
		<div className="flex items-center gap-2 text-12 text-muted">
			<span className="min-w-0 flex-1">Previews, tests and the next draft run use a call of this trigger.</span>
			<Button
				small
				disabled={readOnly}
				onClick={() =>
					editor.apply((doc) => pin(doc, node, pinOf(sample)), { keepSelection: true, announce: "Pinned." })
				}
			>
				Pin it
			</Button>
		</div>
	);
}
