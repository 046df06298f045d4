import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import type { Connection } from "@/shared/connections/data";
import { ConfirmDialog } from "@/ui/dialog";
import { Link } from "@/ui/link";
import { toast } from "@/ui/toast";

interface DeleteDialogProps {
	connection: Connection;
	onClose: () => void;
	onDeleted?: () => Promise<void>;
}

/** DeleteDialog deletes a connection. It names the workflows that use it. */
export function DeleteDialog({ connection, onClose, onDeleted }: DeleteDialogProps) {
	const { id, name } = connection;
	const [users, setUsers] = useState(connection.used_by);
	const client = useQueryClient();
	const remove = async () => {
		try {
			await api.DELETE("/v1/connections/{id}", { params: { path: { id } } });
		} catch (thrown) {
			if (toApiError(thrown).code === "connection_in_use")
				setUsers((await got(api.GET("/v1/connections/{id}", { params: { path: { id } } }))).used_by);
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
			<Users users={active}>These active workflows use it. Pause or change them first:</Users>
			<Users users={others}>Steps of these workflows will fail:</Users>
		</ConfirmDialog>
	);
}

function Users({ users, children }: { users: Connection["used_by"]; children: string }) {
	if (users.length === 0) return null;
	return (
		<>
			<p className="mt-3 text-text">{children}</p>
			<ul aria-label={children} className="max-h-40 list-disc overflow-y-auto pl-5">
				{users.map(({ workflow_id: id, name }) => (
					<li key={id} className="break-words">
						<Link to="/workflows/$id" params={{ id }}>
							{name}
						</Link>
					</li>
				))}
			</ul>
		</>
	);
}
