import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { useHostConfirmation } from "@/shared/connections/confirm-hosts";
import { CustomForm } from "@/shared/connections/custom";
import type { Connection, Integration } from "@/shared/connections/data";
import { Fields } from "@/shared/connections/fields";
import {
	certificateFields,
	changedFields,
	customDraft,
	customFields,
	definitionOf,
	emptyCustom,
	isComplete,
	isDefined,
} from "@/shared/connections/form";
import { TlsForm } from "@/shared/connections/tls-form";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";

interface ChangeDialogProps {
	connection: Connection;
	/** The integration of the connection; undefined for a custom one. */
	service: Integration | undefined;
	onClose: () => void;
}

/** ChangeDialog changes the fields of a connection. Stored secrets are not shown, and stay if nothing is entered. */
export function ChangeDialog({ connection, service, onClose }: ChangeDialogProps) {
	const { id, auth, definition } = connection;
	const [values, setValues] = useState<Record<string, string>>({ ...connection.fields });
	const [custom, setCustom] = useState(definition ? customDraft(definition) : emptyCustom);
	const client = useQueryClient();
	const main = definition ? customFields(auth, custom) : (service?.auth.find((way) => way.id === auth)?.fields ?? []);
	const fields = definition ? [...main, ...certificateFields(auth, custom)] : main;
	const [hasChanged, setChanged] = useState(false);
	// Stored secrets would be used in another way, so they are entered again.
	const again = service?.own === true && fields.length > 0 && (connection.status === "needs_reconnect" || hasChanged);
	const confirmation = useHostConfirmation(service, again);
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () => {
			const body = {
				fields: changedFields(fields, values, connection.fields),
				...(definition && { definition: definitionOf(auth, custom, definition) }),
				...(confirmation.hosts && { hosts: confirmation.hosts }),
			};
			return got(api.PATCH("/v1/connections/{id}", { params: { path: { id } }, body }));
		},
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["connections"] });
			toast.done("The connection was saved. Test it to see whether it works.");
			onClose();
		},
		onError: (thrown) => {
			if (toApiError(thrown).field("/hosts")) setChanged(true);
			confirmation.onError(thrown);
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const confirm = confirmation.control(error?.field("/hosts"));
	const isPlaced = (pointer: string) =>
		pointer.startsWith("/fields/") || pointer.startsWith("/definition/") || (pointer === "/hosts" && confirm);
	const placed = error?.fields.length && error.fields.every(({ pointer }) => isPlaced(pointer));
	const ready =
		isComplete(fields, values, !again) && !confirmation.isMissing && (!definition || isDefined(auth, custom));
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Change “${connection.name}”`}
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						Save
					</Button>
				</>
			}
		>
			{definition && <CustomForm kind={auth} draft={custom} onChange={setCustom} error={error} />}
			<Fields fields={main} values={values} onChange={setValues} error={error} stored={!again} />
			{confirm}
			{definition && (
				<TlsForm
					kind={auth}
					draft={custom}
					onDraft={setCustom}
					values={values}
					onValues={setValues}
					error={error}
					stored={"client_certificate" in connection.fields}
				/>
			)}
			{!definition && fields.length === 0 && <p>This connection has no fields. Reconnect it to change the account.</p>}
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}
