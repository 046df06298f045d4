import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { AppFields, appBody, emptyApp, isAppComplete, isAppErrorPlaced } from "@/shared/connections/app-fields";
import { type Integration, type OAuthApp, useIntegrations } from "@/shared/connections/data";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, NativeSelect } from "@/ui/field";
import { ErrorNote, ErrorState, SkeletonRows } from "@/ui/states";
import { toast } from "@/ui/toast";

interface OAuthAppDialogProps {
	/** The app to replace; undefined for a new one. */
	app?: OAuthApp;
	onClose: () => void;
}

/** OAuthAppDialog adds or replaces the OAuth app for a service. */
export function OAuthAppDialog({ app, onClose }: OAuthAppDialogProps) {
	const { data, error, refetch } = useIntegrations();
	if (data) return <AppForm app={app} services={data.filter(usesApps)} onClose={onClose} />;
	return (
		<Dialog open onOpenChange={(open) => !open && onClose()} title="OAuth app">
			{error ? <ErrorState error={error} onRetry={() => void refetch()} /> : <SkeletonRows rows={4} />}
		</Dialog>
	);
}

const usesApps = ({ auth }: Integration) => auth.some(({ consent }) => consent);

function AppForm({ app, services, onClose }: OAuthAppDialogProps & { services: Integration[] }) {
	const [id, setId] = useState(app?.integration ?? "");
	const [auth, setAuth] = useState(app?.auth);
	const [draft, setDraft] = useState(
		app ? { ...emptyApp, clientId: app.client_id, fields: app.fields, shared: app.shared } : emptyApp,
	);
	const client = useQueryClient();
	const service = services.find((one) => one.id === id);
	const ways = service?.auth.filter(({ consent }) => consent) ?? [];
	const way = ways.find((one) => one.id === auth) ?? ways[0];
	const chosen = service && way ? { service, way } : undefined;
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: (body: ReturnType<typeof appBody>) => got(api.POST("/v1/oauth-apps", { body })),
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["oauth-apps"] });
			toast.done(`The app for ${service?.name} was saved`);
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const ready = chosen && isAppComplete(chosen.way, draft);
	const choose = (next: string) => {
		setId(next);
		setAuth(undefined);
		save.reset();
	};
	return (
		<Dialog
			open
			guarded
			onOpenChange={(open) => !open && onClose()}
			title={app ? `Replace the app for ${service?.name ?? id}` : "Add an OAuth app"}
			description={
				app
					? "Enter the secrets again: the new values replace the old ones. Connections keep the old app until they are reconnected."
					: "Another app for the same service replaces the one that exists."
			}
			onSubmit={() => ready && save.mutate(appBody(chosen.service, chosen.way, draft))}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						{app ? "Replace app" : "Add app"}
					</Button>
				</>
			}
		>
			{!app && (
				<Field label="Service" required error={error?.field("/integration")}>
					<NativeSelect
						value={id}
						onChange={(event) => choose(event.target.value)}
						options={[
							...(id === "" ? [{ value: "", label: "Choose…" }] : []),
							...services.map((one) => ({ value: one.id, label: one.name })),
						]}
					/>
				</Field>
			)}
			{!app && way && ways.length > 1 && (
				<Field label="Used for" error={error?.field("/auth")}>
					<NativeSelect
						value={way.id}
						onChange={(event) => setAuth(event.target.value)}
						options={ways.map((one) => ({ value: one.id, label: one.label }))}
					/>
				</Field>
			)}
			{chosen && <AppFields {...chosen} draft={draft} onChange={setDraft} error={error} />}
			{error && !(chosen && isAppErrorPlaced(chosen.way, error)) && <ErrorNote error={error} />}
		</Dialog>
	);
}
