import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { useMay } from "@/api/session";
import { useEditor, useEditorState } from "@/pages/builder/state";
import type { Trigger } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { ConfirmDialog } from "@/ui/dialog";
import { useTriggerStates } from "../../../data/queries";

/** WebhookAddress shows the URL of the trigger. It exists once the trigger has been saved. */
export function WebhookAddress({ trigger }: { trigger: Trigger }) {
	const editor = useEditor();
	const saved = useEditorState((state) => state.stored.doc.triggers.some((one) => one.id === trigger.id));
	const state = useTriggerStates(editor.id)?.find((one) => one.id === trigger.id);
	const [asking, setAsking] = useState(false);
	const mayWrite = useMay("write");
	const client = useQueryClient();
	const rotate = useMutation({
		meta: { quiet: true },
		mutationFn: () =>
			got(
				api.POST("/v1/workflows/{id}/triggers/{trigger_id}/rotate", {
					params: { path: { id: editor.id, trigger_id: trigger.id } },
				}),
			),
		onSuccess: () => client.invalidateQueries({ queryKey: ["workflows", editor.id, "triggers"] }),
	});
	return (
		<div className="flex flex-col gap-1">
			<p className="font-medium">URL</p>
			{state?.url ? (
				<>
					<div className="flex items-center gap-1 rounded-6 border bg-canvas py-0.5 pr-1 pl-2">
						<code className="min-w-0 flex-1 truncate font-mono text-12" title={state.url}>
							{state.url}
						</code>
						<CopyButton value={state.url} label="Copy URL" />
					</div>
					<div className="flex items-center gap-2 text-12 text-muted">
						<span className="flex-1">Anyone who has this URL can start runs. Keep it secret.</span>
						{mayWrite && (
							<Button small kind="quiet" onClick={() => setAsking(true)}>
								New URL…
							</Button>
						)}
					</div>
				</>
			) : (
				<p className="text-muted">
					{saved ? "Only members who can edit the workflow see the URL." : "Save the workflow to get its URL."}
				</p>
			)}
			<ConfirmDialog
				open={asking}
				onOpenChange={setAsking}
				title="Create a new URL?"
				verb="Create URL"
				danger
				onConfirm={async () => {
					await rotate.mutateAsync();
				}}
			>
				The current URL stops working immediately. Give the new URL to everyone who calls it.
			</ConfirmDialog>
		</div>
	);
}
