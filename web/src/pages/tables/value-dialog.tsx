import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { toApiError } from "@/api/error";
import type { Raw } from "@/api/raw-json";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { CopyButton } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Field } from "@/ui/field";
import { toast } from "@/ui/toast";
import { typeName } from "./columns";
import { type Row, type Table, updateCell } from "./data";
import { type Column, editText, readCell } from "./value";
import { ValueInput } from "./value-input";

export interface ValueDialogProps {
	table: Table;
	row: Row;
	column: Column;
	/** Shows the value without changing it. */
	readOnly: boolean;
	onClose: () => void;
}

/** ValueDialog shows and edits a value that is too long for its cell. */
export function ValueDialog({ table, row, column, readOnly, onClose }: ValueDialogProps) {
	const first = editText(row.values.get(column.name), column.type);
	const [text, setText] = useState(first);
	const [problem, setProblem] = useState<string>();
	const client = useQueryClient();
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: (raw: Raw) => updateCell(client, table.id, row, column.name, raw),
		onSuccess: () => {
			toast.done("The value was saved");
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const submit = () => {
		const read = readCell(text, column);
		setProblem("problem" in read ? read.problem : undefined);
		if ("raw" in read) save.mutate(read.raw);
	};
	const open = (next: boolean) => !next && onClose();
	if (readOnly) {
		return (
			<Dialog open onOpenChange={open} title={column.name} width="large">
				<CodeBlock code={first === "" ? "null" : first} label={column.name} wrap />
			</Dialog>
		);
	}
	return (
		<Dialog
			open
			onOpenChange={open}
			title={`Edit “${column.name}”`}
			width="large"
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={text === first}>
						Save value
					</Button>
				</>
			}
		>
			<Field
				label={typeName(column.type)}
				error={problem ?? error?.field(`/values/${column.name}`) ?? error?.message}
				hint={column.required ? undefined : "Leave it empty for null."}
				aside={<CopyButton value={text} label="Copy value" />}
			>
				<ValueInput column={column} value={text} onChange={setText} large />
			</Field>
		</Dialog>
	);
}
