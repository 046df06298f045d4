import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { refreshTable, type Table } from "./data";

/** RenameDialog renames a table. */
export function RenameDialog({ table, onClose }: { table: Table; onClose: () => void }) {
	const [name, setName] = useState(table.name);
	const client = useQueryClient();
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.PATCH("/v1/tables/{id}", { params: { path: { id: table.id } }, body: { name } })),
		onSuccess: async (next) => {
			client.setQueryData(["tables", table.id], next);
			await refreshTable(client, table.id);
			toast.done("The table was renamed");
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const problem = error?.field("/name") ?? (error?.code === "table_exists" ? error.message : undefined);
	const ready = name !== "" && name !== table.name;
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Rename “${table.name}”`}
			width="small"
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						Rename
					</Button>
				</>
			}
		>
			<Field label="Name" required error={problem} hint="Steps that use the old name must be changed.">
				<TextInput
					value={name}
					onChange={(event) => setName(event.target.value.trim())}
					spellCheck={false}
					maxLength={63}
					className="font-mono text-12"
				/>
			</Field>
			{error && !problem && <ErrorNote error={error} />}
		</Dialog>
	);
}
