import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextArea } from "@/ui/field";
import { CheckIcon, CloseIcon } from "@/ui/icons";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";

export interface AnswerProps {
	run: string;
	step: string;
	/** The question to decide, if the page does not show it anyway. */
	message?: string | null;
	small?: boolean;
}

/** AnswerButtons approve or reject a waiting step. They are hidden from users who may not decide. */
export function AnswerButtons({ run, step, message, small }: AnswerProps) {
	const may = useMay("execute");
	const [choice, setChoice] = useState<boolean>();
	if (!may) return null;
	return (
		<div className="row-control flex gap-2">
			<Button small={small} icon={CloseIcon} onClick={() => setChoice(false)}>
				Reject
			</Button>
			<Button small={small} kind="primary" icon={CheckIcon} onClick={() => setChoice(true)}>
				Approve
			</Button>
			{choice !== undefined && (
				<AnswerDialog run={run} step={step} message={message} approved={choice} onClose={() => setChoice(undefined)} />
			)}
		</div>
	);
}

/** parseData parses JSON; empty text means no data. */
export function parseData(text: string): { data?: unknown; wrong?: string } {
	if (text.trim() === "") return {};
	try {
		return { data: JSON.parse(text) };
	} catch (error) {
		return { wrong: `This is not valid JSON: ${(error as Error).message}` };
	}
}

function AnswerDialog({
	run,
	step,
	message,
	approved,
	onClose,
}: AnswerProps & { approved: boolean; onClose: () => void }) {
	const client = useQueryClient();
	const [comment, setComment] = useState("");
	const [text, setText] = useState("");
	const [wrong, setWrong] = useState<string>();
	const answer = useMutation({
		meta: { quiet: true },
		mutationFn: (data: unknown) =>
			got(
				api.POST("/v1/runs/{id}/steps/{step_id}/resume", {
					params: { path: { id: run, step_id: step } },
					body: { approved, ...(comment && { comment }), ...(data !== undefined && { data: data as never }) },
				}),
			),
		onSuccess: () => {
			toast.done(approved ? "Approved. The run continues." : "Rejected. The run continues.");
			void client.invalidateQueries({ queryKey: ["approvals"] });
			onClose();
		},
	});
	const submit = () => {
		const { data, wrong: why } = parseData(text);
		setWrong(why);
		if (why === undefined) answer.mutate(data);
	};
	return (
		<Dialog
			open
			guarded={comment !== "" || text !== ""}
			onOpenChange={(open) => !open && onClose()}
			title={approved ? "Approve" : "Reject"}
			description={message ?? undefined}
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind={approved ? "primary" : "danger"} busy={answer.isPending}>
						{approved ? "Approve" : "Reject"}
					</Button>
				</>
			}
		>
			<Field label="Comment" hint="Saved with the run and available to later steps.">
				<TextArea value={comment} onChange={(event) => setComment(event.target.value)} rows={2} />
			</Field>
			<Field label="Data" hint="Optional JSON for later steps, such as a number you were asked for." error={wrong}>
				<TextArea
					value={text}
					onChange={(event) => setText(event.target.value)}
					rows={3}
					className="font-mono"
					spellCheck={false}
				/>
			</Field>
			{answer.error && <ErrorNote error={toApiError(answer.error)} />}
		</Dialog>
	);
}
