import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { AppFields, appBody, emptyApp, isAppComplete, isAppErrorPlaced } from "./app-fields";
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
	const [draft, setDraft] = useState(emptyApp);
	const client = useQueryClient();
	const owner = useMay("admin");
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.POST("/v1/oauth-apps", { body: appBody(service, way, draft) })),
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["oauth-apps"] });
			onSaved();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const ready = isAppComplete(way, draft);
	if (!owner) {
		return (
			<Dialog
				open
				onOpenChange={(open) => !open && onClose()}
				title={`${service.name} is not set up yet`}
				actions={<Button onClick={onBack}>Back</Button>}
			>
				<p>
					To connect {service.name}, this workspace needs an OAuth app. Ask an owner to add it under Settings → OAuth
					apps, or to connect {service.name} once: the same dialog then asks for it.
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
			<AppFields service={service} way={way} draft={draft} onChange={setDraft} error={error} />
			{error && !isAppErrorPlaced(way, error) && <ErrorNote error={error} />}
		</Dialog>
	);
}
