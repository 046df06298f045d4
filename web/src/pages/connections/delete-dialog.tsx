import { useQuery, useQueryClient } from "@tanstack/react-query";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import type { Connection } from "@/shared/connections/data";
import { ConfirmDialog } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { Users } from "./users";

interface DeleteDialogProps {
	connection: Connection;
	onClose: () => void;
	onDeleted?: () => Promise<void>;
}

/** DeleteDialog deletes a connection. It names the workflows that use it. */
export function DeleteDialog({ connection, onClose, onDeleted }: DeleteDialogProps) {
	const { id, name } = connection;
	const client = useQueryClient();
	// A list of connections does not say which steps use them.
	const detail = useQuery({
		queryKey: ["connections", id],
		queryFn: ({ signal }) => got(api.GET("/v1/connections/{id}", { params: { path: { id } }, signal })),
	});
	const users = (detail.data ?? connection).used_by;
	const remove = async () => {
		try {
			await api.DELETE("/v1/connections/{id}", { params: { path: { id } } });
		} catch (thrown) {
			if (toApiError(thrown).code === "connection_in_use") await detail.refetch();
			throw thrown;
		}
		toast.done(`“${name}” was deleted`);
		await onDeleted?.();
		client.removeQueries({ queryKey: ["connections", id] });
		await client.invalidateQueries({ queryKey: ["connections"] });
	};
	const active = users.filter((user) => user.active);
	const others = users.filter((user) => !user.active);
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Delete “${name}”?`}
			verb="Delete connection"
			danger
			onConfirm={remove}
		>
			<p>The credential cannot be recovered. If the service offers it, its token is revoked there.</p>
			<Affected users={active}>These active workflows use it. Pause or change them first:</Affected>
			<Affected users={others}>Steps of these workflows will fail:</Affected>
		</ConfirmDialog>
	);
}

function Affected({ users, children }: { users: Connection["used_by"]; children: string }) {
	if (users.length === 0) return null;
	return (
		<>
			<p className="mt-3 text-text">{children}</p>
			<Users users={users} label={children} />
		</>
	);
}
