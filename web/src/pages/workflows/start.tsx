import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { AttachFiles } from "@/shared/files/attach-files";
import { type Attachment, keptFiles, startWith } from "@/shared/files/attachment";
import { LostFiles } from "@/shared/files/lost-files";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { Field } from "@/ui/field";
import { PlayIcon } from "@/ui/icons";
import { ErrorNote } from "@/ui/states";
import type { Workflow } from "./activity";
import { readPayload } from "./payload";

/** StartDialog starts a run with a payload, then opens the run. */
export function StartDialog({
	workflow,
	onOpenChange,
}: {
	workflow: Pick<Workflow, "id" | "name" | "activity">;
	onOpenChange: (open: boolean) => void;
}) {
	const { id, name, activity } = workflow;
	const [text, setText] = useState("{}");
	const [problem, setProblem] = useState<string>();
	const [attached, setAttached] = useState<readonly Attachment[]>([]);
	const navigate = useNavigate();
	const client = useQueryClient();
	const last = useQuery({
		queryKey: ["runs", activity?.last_run?.id],
		queryFn: ({ signal }) =>
			got(api.GET("/v1/runs/{id}", { params: { path: { id: activity?.last_run?.id ?? "" } }, signal })),
		enabled: Boolean(activity?.last_run),
	});
	const start = useMutation({
		mutationFn: (payload: Record<string, unknown>) =>
			got(
				api.POST("/v1/workflows/{workflow_id}/runs", {
					params: { path: { workflow_id: id } },
					body: startWith(payload, attached, keptFiles(payload, last.data?.trigger)),
				}),
			),
		meta: { quiet: true },
		onSuccess: (run) => {
			void client.invalidateQueries({ queryKey: ["runs"] });
			return navigate({ to: "/runs/$id", params: { id: run.id } });
		},
	});
	const submit = () => {
		const read = readPayload(text);
		setProblem(read.problem);
		if (read.payload) start.mutate(read.payload);
	};
	const payload = last.data?.trigger.payload;
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title={`Run “${name}”`}
			description="Steps read the payload as trigger.payload."
			guarded
			onSubmit={submit}
			actions={
				<>
					{payload && Object.keys(payload).length > 0 && (
						<Button kind="quiet" className="mr-auto" onClick={() => setText(JSON.stringify(payload, null, 2))}>
							Use payload of last run
						</Button>
					)}
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" icon={PlayIcon} busy={start.isPending}>
						Run
					</Button>
				</>
			}
		>
			<Field label="Payload" error={problem} hint="A JSON object.">
				<CodeEditor
					label="Payload"
					language="json"
					value={text}
					onChange={setText}
					tabIndents={false}
					onReady={(editor) => editor.focus()}
				/>
			</Field>
			<LostFiles payload={readPayload(text).payload} earlier={last.data?.trigger} />
			<AttachFiles attached={attached} onChange={setAttached} />
			{start.error && <ErrorNote error={start.error} />}
		</Dialog>
	);
}
