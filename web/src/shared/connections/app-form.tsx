import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { redirectUrl } from "./consent";
import type { Integration, Way } from "./data";

interface AppFormProps {
	service: Integration;
	way: Way;
	onBack: () => void;
	onClose: () => void;
	onSaved: () => void;
}

/** AppForm adds the OAuth app that people connect to a service with. Only owners can add one. */
export function AppForm({ service, way, onBack, onClose, onSaved }: AppFormProps) {
	const [id, setId] = useState("");
	const [secret, setSecret] = useState("");
	const owner = useMay("admin");
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () =>
			got(
				api.POST("/v1/oauth-apps", {
					body: {
						integration: service.id,
						auth: way.id,
						client_id: id.trim(),
						client_secret: secret.trim(),
						shared: false,
					},
				}),
			),
		onSuccess: onSaved,
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const ready = id.trim() !== "" && secret.trim() !== "";
	if (!owner) {
		return (
			<Dialog
				open
				onOpenChange={(open) => !open && onClose()}
				title={`${service.name} is not set up yet`}
				actions={<Button onClick={onBack}>Back</Button>}
			>
				<p>
					To connect {service.name}, this workspace needs an OAuth app. Ask an owner to add it: they connect{" "}
					{service.name} once, and the same dialog asks for it.
				</p>
			</Dialog>
		);
	}
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Set up ${service.name}`}
			description={`Register an app at ${service.name} once. Everyone in the workspace connects with it.`}
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={onBack}>Back</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						Save and continue
					</Button>
				</>
			}
		>
			{way.help && <p className="break-words">{way.help}</p>}
			<div className="flex flex-col gap-1">
				<p className="font-medium">Redirect URL to register</p>
				<div className="flex items-center gap-2">
					<code className="min-w-0 flex-1 rounded-6 bg-sunken px-2 py-1.5 font-mono text-12 break-all">
						{redirectUrl()}
					</code>
					<CopyButton value={redirectUrl()} label="Copy the redirect URL" />
				</div>
			</div>
			<Field label="Client ID" required error={error?.field("/client_id")}>
				<TextInput spellCheck={false} value={id} onChange={(event) => setId(event.target.value)} />
			</Field>
			<Field label="Client secret" required error={error?.field("/client_secret")}>
				<TextInput
					type="password"
					autoComplete="new-password"
					value={secret}
					onChange={(event) => setSecret(event.target.value)}
				/>
			</Field>
			{error && error.fields.length === 0 && <ErrorNote error={error} />}
		</Dialog>
	);
}
