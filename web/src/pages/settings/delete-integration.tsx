import { useQueryClient } from "@tanstack/react-query";
import { useConnections } from "@/shared/connections/data";
import { ConfirmDialog } from "@/ui/dialog";
import { Link } from "@/ui/link";
import { toast } from "@/ui/toast";
import { deleteIntegration, manifestQuery, readAgain } from "./manifest";

interface DeleteIntegrationProps {
	id: string;
	name: string;
	onClose: () => void;
	onDeleted?: () => Promise<void>;
}

/** DeleteIntegration deletes an own integration. It names the connections that have to be deleted first. */
export function DeleteIntegration({ id, name, onClose, onDeleted }: DeleteIntegrationProps) {
	const client = useQueryClient();
	const connections = useConnections().data?.filter(({ integration }) => integration === id) ?? [];
	const remove = async () => {
		await deleteIntegration(id);
		toast.done(`“${name}” was deleted`);
		await onDeleted?.();
		client.removeQueries({ queryKey: manifestQuery(id).queryKey });
		await readAgain(client);
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Delete “${name}”?`}
			verb="Delete integration"
			danger
			onConfirm={remove}
		>
			<p>Its manifest and its OAuth app cannot be recovered. Steps and triggers that use it will fail.</p>
			{connections.length > 0 && (
				<>
					<p className="mt-3 text-text">These connections belong to it. Delete them first:</p>
					<ul className="mt-1 flex flex-col gap-1">
						{connections.map((one) => (
							<li key={one.id}>
								<Link to="/connections/$id" params={{ id: one.id }}>
									{one.name}
								</Link>
							</li>
						))}
					</ul>
				</>
			)}
		</ConfirmDialog>
	);
}
