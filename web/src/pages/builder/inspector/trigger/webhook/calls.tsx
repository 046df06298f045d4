import { useEditor, useEditorState, usePinned, useReadOnly } from "@/pages/builder/state";
import { pin, type Trigger, triggerNode, unpin } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { Link } from "@/ui/link";
import { RelativeTime } from "@/ui/time";
import { pinOf, sampleOfCall } from "../../../data/sample";
import { testOutcome } from "../../../data/use-samples";
import { useReplayState } from "../../../replay/store";
import { Section } from "../../section";
import { Listen } from "./listen";
import { type HookCall, useCalls } from "./use-calls";

/** Calls tries the URL of a webhook trigger, and lists its latest calls to build and test with. */
export function Calls({ trigger }: { trigger: Trigger }) {
	const calls = useCalls(trigger);
	return (
		<>
			<Section title="Try it" open>
				<Listen trigger={trigger} />
			</Section>
			<Section title="Recent calls" open summary={calls ? String(calls.length) : undefined}>
				{!calls?.length && <p className="text-muted">No calls yet. Calls of the last 7 days are listed here.</p>}
				<Pinned trigger={trigger} />
				<ul className="flex flex-col gap-1">
					{calls?.map((call) => (
						<li key={call.id}>
							<Row trigger={trigger} call={call} />
						</li>
					))}
				</ul>
			</Section>
		</>
	);
}

function Row({ trigger, call }: { trigger: Trigger; call: HookCall }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const [{ sample }, replay] = useReplayState();
	const mine = sampleOfCall(trigger.id, call);
	const used = call.payload !== null && JSON.stringify(mine) === JSON.stringify(sample);
	return (
		<div className="flex flex-col gap-1 rounded-6 border bg-canvas py-1 pr-1 pl-2">
			<div className="flex min-w-0 items-center gap-2">
				<span className="font-mono text-12">{call.method}</span>
				<span className="min-w-0 flex-1 truncate text-12 text-muted">
					<RelativeTime at={call.at} />
					{call.outcome === testOutcome && " · test call"}
					{call.outcome === "duplicate" && " · duplicate"}
					{call.run_id && (
						<>
							{" · "}
							<Link to="/runs/$id" params={{ id: call.run_id }}>
								open run
							</Link>
						</>
					)}
				</span>
				{used && <Badge tone="accent">in use</Badge>}
				{call.payload !== null && (
					<>
						{!used && (
							<Button small kind="quiet" onClick={() => replay.set({ sample: mine })}>
								Use
							</Button>
						)}
						<Button
							small
							kind="quiet"
							disabled={readOnly}
							onClick={() =>
								editor.apply((doc) => pin(doc, triggerNode(trigger.id), pinOf(mine)), {
									keepSelection: true,
									announce: "Pinned.",
								})
							}
						>
							Pin
						</Button>
					</>
				)}
			</div>
			{call.reason !== null && <p className="text-12 break-words text-failed">Rejected: {call.reason}</p>}
			{call.reason === null && call.payload === null && (
				<p className="text-12 text-muted">The payload is larger than 64 KiB, so it is not kept.</p>
			)}
		</div>
	);
}

/** Pinned says that data of the trigger is pinned. */
function Pinned({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	const node = triggerNode(trigger.id);
	const dirty = useEditorState((state) => state.dirty);
	if (usePinned()[node] === undefined) return null;
	return (
		<p className="flex items-center gap-2 text-12 text-muted">
			<Badge tone="accent">pinned</Badge>
			<span className="min-w-0 flex-1">
				Draft runs and step tests start with pinned data{dirty ? ", which is kept once you save" : ""}.
			</span>
			<Button
				small
				kind="quiet"
				disabled={readOnly}
				onClick={() => editor.apply((doc) => unpin(doc, [node]), { keepSelection: true, announce: "Unpinned." })}
			>
				Unpin
			</Button>
		</p>
	);
}
