import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Field, NativeSelect } from "@/ui/field";
import { OnceDialog } from "@/ui/once-dialog";
import { toast } from "@/ui/toast";
import type { Webhook } from "./data";
import type { EventName } from "./events";
import { bodyOf, complete, type Draft, emptyDraft, Form } from "./form";

interface Props {
	onOpenChange: (open: boolean) => void;
}

/** CreateDialog creates a webhook; `onMade` shows its secret. */
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
			description="Sends events to your server as they happen."
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

/** SecretDialog shows a signing secret, which cannot be shown again. */
export function SecretDialog({ secret, title, onDone }: { secret: string; title: string; onDone: () => void }) {
	return (
		<OnceDialog
			title={title}
			description="Your server uses it to verify that a request came from Stepmill."
			label="Signing secret"
			value={secret}
			onDone={onDone}
		/>
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
			For 24 hours <code className="font-mono text-12">webhook-signature</code> is signed with both secrets, so that you
			can switch without losing events. <code className="font-mono text-12">X-Service-Signature</code> uses the new
			secret immediately.
		</ConfirmDialog>
	);
}

const spans = [
	{ value: "1", label: "The last hour" },
	{ value: "24", label: "The last 24 hours" },
	{ value: "168", label: "The last 7 days" },
];

/** MissedDialog redelivers the events that were not delivered. */
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
		toast.done(count === 0 ? "No missed events" : `Redelivering ${count === 1 ? "1 event" : `${count} events`}`);
		await client.invalidateQueries({ queryKey: ["webhooks", id] });
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={onOpenChange}
			title="Redeliver missed events"
			verb="Redeliver"
			onConfirm={redeliver}
		>
			<div className="flex flex-col gap-4">
				<p>Redelivers each exhausted or dropped event once, unless it has been delivered since.</p>
				<Field label="Period">
					<NativeSelect options={spans} value={hours} onChange={(event) => setHours(event.target.value)} />
				</Field>
			</div>
		</ConfirmDialog>
	);
}
