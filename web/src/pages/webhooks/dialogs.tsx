import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { SecretOnce } from "@/ui/copy";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Field, NativeSelect } from "@/ui/field";
import { toast } from "@/ui/toast";
import type { Webhook } from "./data";
import type { EventName } from "./events";
import { bodyOf, complete, type Draft, emptyDraft, Form } from "./form";

interface Props {
	onOpenChange: (open: boolean) => void;
}

/** CreateDialog makes a webhook; `onMade` shows its secret. */
export function CreateDialog({ onOpenChange, onMade }: Props & { onMade: (made: Schema["WebhookCreated"]) => void }) {
	const [draft, setDraft] = useState<Draft>(emptyDraft);
	const client = useQueryClient();
	const create = useMutation({
		mutationFn: () => got(api.POST("/v1/webhooks", { body: bodyOf(draft) })),
		meta: { quiet: true },
		onSuccess: (made) => {
			onMade(made);
			return client.invalidateQueries({ queryKey: ["webhooks"] });
		},
	});
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="New webhook"
			description="Tells a server of yours what happens here, as it happens."
			guarded
			onSubmit={() => complete(draft) && create.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={create.isPending} disabled={!complete(draft)}>
						Create webhook
					</Button>
				</>
			}
		>
			<Form draft={draft} onChange={setDraft} error={create.error ? toApiError(create.error) : undefined} />
		</Dialog>
	);
}

export function EditDialog({ webhook, onOpenChange }: Props & { webhook: Webhook }) {
	const { id } = webhook;
	const [draft, setDraft] = useState<Draft>({
		url: webhook.url,
		events: webhook.events as EventName[],
		workflow: webhook.workflow_id ?? "",
	});
	const client = useQueryClient();
	const save = useMutation({
		mutationFn: () => got(api.PATCH("/v1/webhooks/{id}", { params: { path: { id } }, body: bodyOf(draft) })),
		meta: { quiet: true },
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["webhooks"] });
			toast.done("The webhook was saved");
			onOpenChange(false);
		},
	});
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="Edit webhook"
			guarded
			onSubmit={() => complete(draft) && save.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!complete(draft)}>
						Save
					</Button>
				</>
			}
		>
			<Form draft={draft} onChange={setDraft} error={save.error ? toApiError(save.error) : undefined} />
		</Dialog>
	);
}

/** SecretDialog shows a signing secret: the one time that it can be seen. */
export function SecretDialog({ secret, title, onDone }: { secret: string; title: string; onDone: () => void }) {
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onDone()}
			title={title}
			description="Your server needs it to check that a request came from here."
			guarded
			actions={
				<Button kind="primary" onClick={onDone}>
					I have stored it
				</Button>
			}
		>
			<SecretOnce label="Signing secret" value={secret} />
		</Dialog>
	);
}

export function RotateDialog({
	id,
	onOpenChange,
	onRotated,
}: Props & { id: string; onRotated: (secret: string) => void }) {
	const client = useQueryClient();
	const rotate = async () => {
		const made = await got(api.POST("/v1/webhooks/{id}/rotate-secret", { params: { path: { id } } }));
		onRotated(made.signing_secret);
		await client.invalidateQueries({ queryKey: ["webhooks"] });
	};
	return (
		<ConfirmDialog open onOpenChange={onOpenChange} title="Rotate the signing secret?" verb="Rotate" onConfirm={rotate}>
			For 24 hours <code className="font-mono text-12">webhook-signature</code> is made with both secrets, so that
			nothing is lost while you change over. <code className="font-mono text-12">X-Service-Signature</code> uses the new
			one at once.
		</ConfirmDialog>
	);
}

const spans = [
	{ value: "1", label: "The last hour" },
	{ value: "24", label: "The last 24 hours" },
	{ value: "168", label: "The last 7 days" },
];

/** MissedDialog sends again what did not get through. */
export function MissedDialog({ id, onOpenChange }: Props & { id: string }) {
	const [hours, setHours] = useState("24");
	const client = useQueryClient();
	const redeliver = async () => {
		const since = new Date(Date.now() - Number(hours) * 3_600_000).toISOString();
		let count = 0;
		let more = true;
		while (more) {
			const answer = await got(api.POST("/v1/webhooks/{id}/redeliver", { params: { path: { id } }, body: { since } }));
			count += answer.redelivered;
			more = answer.more;
		}
		toast.done(
			count === 0 ? "Nothing was missed" : `${count === 1 ? "1 event is" : `${count} events are`} on the way again`,
		);
		await client.invalidateQueries({ queryKey: ["webhooks", id] });
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={onOpenChange}
			title="Send again what was missed"
			verb="Send again"
			onConfirm={redeliver}
		>
			<div className="flex flex-col gap-4">
				<p>Each event that was given up or dropped is delivered anew, once, unless it has got through since.</p>
				<Field label="From">
					<NativeSelect options={spans} value={hours} onChange={(event) => setHours(event.target.value)} />
				</Field>
			</div>
		</ConfirmDialog>
	);
}
