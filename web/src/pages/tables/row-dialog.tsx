import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { toApiError } from "@/api/error";
import type { Raw } from "@/api/raw-json";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { typeName } from "./columns";
import { addRow, type Query, type Table } from "./data";
import { readCell } from "./value";
import { ValueInput } from "./value-input";

export interface RowDialogProps {
	table: Table;
	/** The rows shown, if the new row may not be among them. */
	query: Query | undefined;
	onClose: () => void;
}

/** RowDialog adds a row. */
export function RowDialog({ table, query, onClose }: RowDialogProps) {
	const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
	const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
	const client = useQueryClient();
	const add = useMutation({
		meta: { quiet: true },
		mutationFn: (values: Map<string, Raw>) => addRow(client, table.id, values, query),
		onSuccess: () => {
			toast.done("The row was added");
			onClose();
		},
	});
	const error = add.error ? toApiError(add.error) : undefined;
	const problemOf = (name: string) => problems.get(name) ?? error?.field(`/values/${name}`);
	const submit = () => {
		const values = new Map<string, Raw>();
		const wrong = new Map<string, string>();
		for (const column of table.columns) {
			const read = readCell(texts.get(column.name) ?? "", column);
			if ("problem" in read) wrong.set(column.name, read.problem);
			else values.set(column.name, read.raw);
		}
		setProblems(wrong);
		if (wrong.size === 0) add.mutate(values);
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`New row in “${table.name}”`}
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={add.isPending}>
						Add row
					</Button>
				</>
			}
		>
			{table.columns.map((column) => (
				<Field
					key={column.id}
					label={<code className="font-mono text-12">{column.name}</code>}
					required={column.required}
					error={problemOf(column.name)}
					aside={
						<span className="text-12 text-muted">
							{column.name === table.key ? `${typeName(column.type)}, key` : typeName(column.type)}
						</span>
					}
				>
					<ValueInput
						column={column}
						value={texts.get(column.name) ?? ""}
						onChange={(text) => setTexts(new Map(texts).set(column.name, text))}
					/>
				</Field>
			))}
			{error && !table.columns.some(({ name }) => error.field(`/values/${name}`)) && <ErrorNote error={error} />}
		</Dialog>
	);
}
