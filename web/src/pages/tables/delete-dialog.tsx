import { api } from "@/api/client";
import { ConfirmDialog } from "@/ui/dialog";
import { toast } from "@/ui/toast";
import { contentOf, type Table } from "./data";

interface Props {
	table: Table;
	onClose: () => void;
	onDeleted: () => Promise<unknown>;
}

/** DeleteTableDialog deletes a table, and says what is lost with it. */
export function DeleteTableDialog({ table, onClose, onDeleted }: Props) {
	const { id, name } = table;
	const remove = async () => {
		await api.DELETE("/v1/tables/{id}", { params: { path: { id } } });
		toast.done(`“${name}” was deleted`);
		await onDeleted();
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Delete “${name}”?`}
			verb="Delete table"
			danger
			onConfirm={remove}
		>
			{table.rows === 0 ? (
				"The table has no rows."
			) : (
				<>
					<strong className="font-semibold text-text">{contentOf(table)}</strong> are deleted with it and cannot be
					recovered. Export them first if you may need them.
				</>
			)}{" "}
			Steps that use the table will fail.
		</ConfirmDialog>
	);
}
