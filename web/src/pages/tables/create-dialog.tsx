import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { api, got } from "@/api/client";
import { type ApiError, toApiError } from "@/api/error";
import { Button, IconButton } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { PlusIcon, TrashIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { canBeKey, type Draft, exampleColumns, isOrdered, newColumn, problemAt, typeOptions } from "./columns";

interface Line {
	line: number;
	column: Draft;
}

const linesOf = (columns: Draft[]): Line[] => columns.map((column, line) => ({ line, column }));

/** CreateDialog creates a table and opens it. */
export function CreateDialog({ example, onClose }: { example: boolean; onClose: () => void }) {
	const [name, setName] = useState(example ? "customers" : "");
	const [lines, setLines] = useState(() => linesOf(example ? exampleColumns : [newColumn]));
	const [key, setKey] = useState(example ? "email" : "");
	const navigate = useNavigate();
	const client = useQueryClient();
	const columns = lines.map(({ column }) => column);
	const candidates = columns.filter((column) => column.name !== "" && canBeKey(column.type));
	const keys = [...new Set(candidates.map((column) => column.name))];
	const chosen = keys.includes(key) ? key : null;
	const create = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.POST("/v1/tables", { body: { name, key: chosen, columns } })),
		onSuccess: async (table) => {
			await client.invalidateQueries({ queryKey: ["tables", "list"] });
			toast.done(`“${table.name}” was created`);
			await navigate({ to: "/tables/$id", params: { id: table.id } });
		},
	});
	const error = create.error ? toApiError(create.error) : undefined;
	const taken = error?.code === "table_exists" ? error.message : undefined;
	const placed = taken ?? error?.field("/name") ?? error?.field("/key") ?? problemAt(error, "/columns");
	const ready = name !== "" && columns.every((column) => column.name !== "");
	const change = (line: number, patch: Partial<Draft>) => {
		const old = columns[lines.findIndex((one) => one.line === line)];
		if (patch.name !== undefined && old?.name === key) setKey(patch.name);
		setLines(lines.map((one) => (one.line === line ? { line, column: { ...one.column, ...patch } } : one)));
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title="New table"
			width="large"
			guarded
			onSubmit={() => ready && create.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={create.isPending} disabled={!ready}>
						Create table
					</Button>
				</>
			}
		>
			<Field
				label="Name"
				required
				error={taken ?? error?.field("/name")}
				hint="Steps refer to the table by this name. Lowercase letters, digits, _ and -."
			>
				<TextInput
					value={name}
					onChange={(event) => setName(event.target.value.trim())}
					spellCheck={false}
					maxLength={63}
					className="font-mono text-12"
				/>
			</Field>
			<fieldset className="flex min-w-0 flex-col gap-2">
				<legend className="mb-1 font-medium">Columns</legend>
				{lines.map(({ line, column }, at) => (
					<ColumnLine
						key={line}
						column={column}
						at={at}
						isKey={column.name !== "" && column.name === chosen}
						error={error}
						onChange={(patch) => change(line, patch)}
						onRemove={lines.length > 1 ? () => setLines(lines.filter((one) => one.line !== line)) : undefined}
					/>
				))}
				{error?.field("/columns") && <p className="text-12 text-failed">{sentence(error.field("/columns") ?? "")}</p>}
				<Button
					small
					kind="quiet"
					icon={PlusIcon}
					className="self-start"
					onClick={() =>
						setLines([...lines, { line: 1 + Math.max(...lines.map((one) => one.line)), column: newColumn }])
					}
				>
					Add column
				</Button>
			</fieldset>
			<Field
				label="Key"
				error={error?.field("/key")}
				hint="No two rows have the same key. Steps and imports update the row that has it."
			>
				<NativeSelect
					value={chosen ?? ""}
					onChange={(event) => setKey(event.target.value)}
					options={[{ value: "", label: "No key" }, ...keys.map((value) => ({ value, label: value }))]}
				/>
			</Field>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}

interface LineProps {
	column: Draft;
	at: number;
	/** The key is always required. */
	isKey: boolean;
	error: ApiError | undefined;
	onChange: (patch: Partial<Draft>) => void;
	onRemove?: () => void;
}

function ColumnLine({ column, at, isKey, error, onChange, onRemove }: LineProps) {
	const nth = `Column ${at + 1}`;
	const problem = problemAt(error, `/columns/${at}`);
	return (
		<div role="group" aria-label={nth} className="flex flex-col gap-1">
			<div className="flex flex-wrap items-center gap-x-3 gap-y-2">
				<TextInput
					aria-label={`${nth}: name`}
					aria-invalid={problem ? true : undefined}
					placeholder="Name"
					value={column.name}
					onChange={(event) => onChange({ name: event.target.value.trim() })}
					spellCheck={false}
					maxLength={63}
					className="min-w-32 flex-1 font-mono text-12"
				/>
				<NativeSelect
					aria-label={`${nth}: type`}
					className="w-28"
					value={column.type}
					onChange={(event) => {
						const type = event.target.value as Draft["type"];
						onChange({ type, indexed: column.indexed && isOrdered(type) });
					}}
					options={typeOptions}
				/>
				<Checkbox
					label="Required"
					checked={column.required || isKey}
					disabled={isKey}
					onChange={(event) => onChange({ required: event.target.checked })}
				/>
				<Checkbox
					label="Indexed"
					checked={column.indexed}
					disabled={!isOrdered(column.type)}
					onChange={(event) => onChange({ indexed: event.target.checked })}
				/>
				<IconButton
					icon={TrashIcon}
					label={`Remove column ${at + 1}`}
					disabled={!onRemove}
					onClick={() => onRemove?.()}
				/>
			</div>
			{problem && <p className="text-12 text-failed">{sentence(problem)}</p>}
		</div>
	);
}
