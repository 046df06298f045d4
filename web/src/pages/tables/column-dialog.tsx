import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { ConfirmDialog, Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { type Draft, isOrdered, newColumn, typeOptions } from "./columns";
import { refreshRows, rowsOf, type Table } from "./data";
import type { Column } from "./value";

/** changed returns the members of a column that differ from the draft. */
function changed(column: Column, draft: Draft): Partial<Draft> {
	const names = ["name", "type", "required", "indexed"] as const;
	return Object.fromEntries(names.filter((name) => draft[name] !== column[name]).map((name) => [name, draft[name]]));
}

export interface ColumnDialogProps {
	table: Table;
	/** The column to change; undefined to add one. */
	column?: Column;
	onClose: () => void;
	/** Called with the new name of a column that was renamed. */
	onRenamed?: (from: string, to: string) => void;
}

/** ColumnDialog adds or changes a column. */
export function ColumnDialog({ table, column, onClose, onRenamed }: ColumnDialogProps) {
	const [draft, setDraft] = useState<Draft>(column ?? newColumn);
	const client = useQueryClient();
	const set = (patch: Partial<Draft>) => setDraft({ ...draft, ...patch });
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () => {
			const { name, ...rest } = draft;
			const columns: Schema["TablePatch"]["columns"] = column
				? { [column.name]: changed(column, draft) }
				: { [name]: rest };
			return got(api.PATCH("/v1/tables/{id}", { params: { path: { id: table.id } }, body: { columns } }));
		},
		onSuccess: async (next) => {
			client.setQueryData(["tables", table.id], next);
			if (column && column.name !== draft.name) onRenamed?.(column.name, draft.name);
			await refreshRows(client, table.id);
			toast.done(column ? `“${draft.name}” was changed` : `“${draft.name}” was added`);
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const at = `/columns/${column?.name ?? draft.name}`;
	const problem = (member: string) => error?.field(`${at}/${member}`);
	const placed = problem("name") ?? problem("type");
	const isKey = column !== undefined && column.name === table.key;
	const ready = draft.name !== "" && (!column || Object.keys(changed(column, draft)).length > 0);
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={column ? `Change the column “${column.name}”` : "New column"}
			description={column ? "The values stay. Steps and filters that use an old name must be changed." : undefined}
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						{column ? "Save column" : "Add column"}
					</Button>
				</>
			}
		>
			<Field
				label="Name"
				required
				error={problem("name")}
				hint="Letters, digits and _. Expressions refer to the column by this name."
			>
				<TextInput
					value={draft.name}
					onChange={(event) => set({ name: event.target.value.trim() })}
					spellCheck={false}
					maxLength={63}
					className="font-mono text-12"
				/>
			</Field>
			<Field
				label="Type"
				error={problem("type")}
				hint={column && "Every value must fit the new type. All values but files can become text or JSON."}
			>
				<NativeSelect
					value={draft.type}
					onChange={(event) => {
						const type = event.target.value as Draft["type"];
						set({ type, indexed: draft.indexed && isOrdered(type) });
					}}
					options={typeOptions}
				/>
			</Field>
			<Checkbox
				label="Required"
				hint={isKey ? "The key is always required." : "Null is not allowed."}
				checked={draft.required}
				disabled={isKey}
				onChange={(event) => set({ required: event.target.checked })}
			/>
			<Checkbox
				label="Indexed"
				hint="Filters and sorting by the column are faster, writes a little slower. JSON and files cannot be indexed."
				checked={draft.indexed}
				disabled={!isOrdered(draft.type)}
				onChange={(event) => set({ indexed: event.target.checked })}
			/>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}

export interface DropColumnDialogProps {
	table: Table;
	column: Column;
	onClose: () => void;
	onDropped: (name: string) => void;
}

/** DropColumnDialog drops a column, and says what is lost with it. */
export function DropColumnDialog({ table, column, onClose, onDropped }: DropColumnDialogProps) {
	const client = useQueryClient();
	const drop = async () => {
		const body = { columns: { [column.name]: null } };
		const next = await got(api.PATCH("/v1/tables/{id}", { params: { path: { id: table.id } }, body }));
		client.setQueryData(["tables", table.id], next);
		onDropped(column.name);
		toast.done(`“${column.name}” was dropped`);
		await refreshRows(client, table.id);
	};
	return (
		<ConfirmDialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Drop the column “${column.name}”?`}
			verb="Drop column"
			danger
			onConfirm={drop}
		>
			{table.rows > 0 && (
				<>
					Its values in <strong className="font-semibold text-text">{rowsOf(table.rows)}</strong> are deleted and cannot
					be recovered.{" "}
				</>
			)}
			Steps and filters that use the column will fail.
		</ConfirmDialog>
	);
}
