import { useEditor, useEditorState } from "@/pages/builder/state";
import type { Json, Trigger } from "@/shared/workflow/model";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { RelativeTime } from "@/ui/time";
import { useHookRequests } from "../../../data/queries";
import { useReplayState } from "../../../replay/store";
import { Section } from "../../section";

/** Requests lists the latest requests of a webhook trigger, to build and test with real data. */
export function Requests({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const [{ payload }, replay] = useReplayState();
	const saved = useEditorState((state) => state.stored.doc.triggers.some((one) => one.id === trigger.id));
	const requests = useHookRequests(editor.id, saved ? trigger.id : null, true);
	return (
		<Section title="Recent requests" open summary={requests ? String(requests.length) : undefined}>
			{!requests?.length && <p className="text-muted">No requests yet. Requests of the last 7 days are listed here.</p>}
			<ul className="flex flex-col gap-1">
				{requests?.map((request) => {
					const used = request.payload !== null && JSON.stringify(request.payload) === JSON.stringify(payload);
					return (
						<li key={request.id} className="flex min-w-0 items-center gap-2 rounded-6 border bg-canvas py-1 pr-1 pl-2">
							<span className="font-mono text-12">{request.method}</span>
							<span className="min-w-0 flex-1 truncate text-12 text-muted">
								<RelativeTime at={request.at} /> · {request.outcome}
							</span>
							{used ? (
								<Badge tone="accent">in use</Badge>
							) : (
								<Button
									small
									kind="quiet"
									disabled={request.payload === null}
									onClick={() => replay.set({ payload: request.payload as Json })}
								>
									Use payload
								</Button>
							)}
						</li>
					);
				})}
			</ul>
		</Section>
	);
}
