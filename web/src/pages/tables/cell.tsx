import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { toApiError } from "@/api/error";
import type { Raw } from "@/api/raw-json";
import { IconButton } from "@/ui/button";
import { cx } from "@/ui/class";
import { control, NativeSelect } from "@/ui/field";
import { EyeIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { type Row, type Table, updateCell } from "./data";
import { type Column, editText, type FileRef, fileIn, isNull, readCell, shownText } from "./value";
import { timeExample } from "./value-input";

export interface CellValueProps {
	raw: Raw | undefined;
	column: Column;
	/** Shows what is in a file. */
	onPreview: (file: FileRef) => void;
}

/** CellValue shows a value, clipped. */
export function CellValue({ raw, column, onPreview }: CellValueProps) {
	const { type } = column;
	if (isNull(raw)) return <span className="text-muted italic">null</span>;
	const file = fileIn(raw, type);
	if (file) {
		return (
			<span className="flex items-center justify-between gap-1">
				<span className="truncate" title={file.name}>
					{shownText(raw, type)}
				</span>
				<IconButton small icon={EyeIcon} label="Preview" tabIndex={-1} onClick={() => onPreview(file)} />
			</span>
		);
	}
	const text = shownText(raw, type);
	if (text === "") return <span className="text-muted">“”</span>;
	return (
		<span
			className={cx("block truncate", (type === "json" || type === "number" || type === "time") && "font-mono text-12")}
			title={text.length > 30 ? text : undefined}
		>
			{text}
		</span>
	);
}

export interface CellEditorProps {
	table: Table;
	row: Row;
	column: Column;
	/** Called when the value is saved or discarded; `refocus` if the focus should return to the cell. */
	onClose: (refocus: boolean) => void;
}

/**
 * CellEditor edits a value in its cell. Enter and leaving the cell save it, Escape discards
 * it. If the API rejects the value, the editor stays open and says why.
 */
export function CellEditor({ table, row, column, onClose }: CellEditorProps) {
	const raw = row.values.get(column.name);
	const first = editText(raw, column.type);
	const [text, setText] = useState(first);
	const [rejected, setRejected] = useState<string>();
	const field = useRef<HTMLInputElement & HTMLSelectElement>(null);
	const id = useId();
	const client = useQueryClient();
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: (next: { raw: Raw; refocus: boolean }) => updateCell(client, table.id, row, column.name, next.raw),
		onSuccess: (_, { refocus }) => onClose(refocus),
		onError: () => setRejected(text),
	});
	useEffect(() => {
		field.current?.focus();
		// The cell is wider and higher with an editor in it.
		field.current?.closest("td")?.scrollIntoView({ block: "nearest", inline: "nearest" });
		if (field.current instanceof HTMLInputElement) field.current.select();
	}, []);
	const submit = (refocus: boolean) => {
		if (save.isPending) return;
		if (text === first) return onClose(refocus);
		// Leaving the cell does not send a rejected value again.
		if (!refocus && text === rejected) return;
		const read = readCell(text, column);
		if ("raw" in read) save.mutate({ raw: read.raw, refocus });
	};
	const onKeyDown = (event: KeyboardEvent) => {
		event.stopPropagation();
		if (event.key !== "Enter" && event.key !== "Escape") return;
		event.preventDefault();
		if (event.key === "Escape") onClose(true);
		else submit(true);
	};
	const error = save.error ? toApiError(save.error) : undefined;
	const problem = error && (error.field(`/values/${column.name}`) ?? error.message);
	const wiring = {
		ref: field,
		value: text,
		"aria-label": column.name,
		"aria-invalid": problem ? true : undefined,
		"aria-describedby": problem ? id : undefined,
		"aria-busy": save.isPending || undefined,
		onBlur: () => submit(false),
		onKeyDown,
	};
	return (
		<div className="flex min-w-44 flex-col gap-1 py-1">
			{column.type === "boolean" ? (
				<NativeSelect
					{...wiring}
					onChange={(event) => setText(event.target.value)}
					options={[{ value: "", label: "null" }, ...["true", "false"].map((value) => ({ value, label: value }))]}
				/>
			) : (
				<input
					{...wiring}
					type="text"
					autoComplete="off"
					spellCheck={column.type === "text"}
					inputMode={column.type === "number" ? "decimal" : undefined}
					placeholder={column.type === "time" ? timeExample : "null"}
					onChange={(event) => setText(event.target.value)}
					className={cx(control, "h-8")}
				/>
			)}
			{problem && (
				<p id={id} role="alert" className="max-w-72 text-left text-12 break-words whitespace-normal text-failed">
					{sentence(problem)}
				</p>
			)}
		</div>
	);
}
