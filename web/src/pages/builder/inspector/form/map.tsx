import { type ComponentType, useId, useState } from "react";
import { isObject, type Json, pointer as pointerTo } from "@/shared/workflow/model";
import { Button, IconButton } from "@/ui/button";
import { FieldContext, TextInput } from "@/ui/field";
import { CloseIcon, PlusIcon } from "@/ui/icons";
import { useProblem } from "./context";
import type { FieldPlan } from "./plan";
import type { FieldProps } from "./props";
import { committed, type Row, rowsOf } from "./rows";
import { converted, fits, type ValueControlProps, type ValueType, ValueTypeSelect, valueType } from "./value-type";

interface MapControlProps extends FieldProps {
	/** Edits the value of one entry. */
	Value: ComponentType<ValueControlProps>;
}

/** MapControl edits an object with arbitrary keys, such as headers. */
export function MapControl({ plan, value, onChange, pointer, root, Value }: MapControlProps) {
	const [rows, setRows] = useState(() => rowsOf(value));
	const [last, setLast] = useState(value);
	if (last !== value) {
		setLast(value);
		if (JSON.stringify(committed(rows)) !== JSON.stringify(isObject(value) ? value : undefined)) setRows(rowsOf(value));
	}
	const put = (next: Row[]) => {
		setRows(next);
		const object = committed(next);
		if (JSON.stringify(object) !== JSON.stringify(value)) onChange(object ?? (plan.required ? {} : undefined));
	};
	const names = rows.map((row) => row.name);
	return (
		<FieldContext value={null}>
			<fieldset aria-label={plan.label} className="flex min-w-0 flex-col gap-2">
				{rows.map((row, i) => (
					<MapRow
						key={row.key}
						plan={plan}
						root={root}
						Value={Value}
						row={row}
						pointer={pointer + pointerTo(row.name)}
						twice={row.name !== "" && names.indexOf(row.name) !== i}
						fresh={row.fresh === true}
						onChange={(changed) => put(rows.map((other) => (other.key === row.key ? changed : other)))}
						onRemove={() => put(rows.filter((other) => other.key !== row.key))}
					/>
				))}
				<Button
					small
					kind="quiet"
					className="self-start"
					icon={PlusIcon}
					onClick={() => setRows([...rows, { key: crypto.randomUUID(), name: "", value: "", fresh: true }])}
				>
					Add {plan.label === "Headers" ? "a header" : "a field"}
				</Button>
			</fieldset>
		</FieldContext>
	);
}

interface MapRowProps {
	plan: FieldPlan;
	root: FieldProps["root"];
	Value: MapControlProps["Value"];
	row: Row;
	pointer: string;
	twice: boolean;
	fresh: boolean;
	onChange: (row: Row) => void;
	onRemove: () => void;
}

function MapRow({ plan, root, Value, row, pointer, twice, fresh, onChange, onRemove }: MapRowProps) {
	const [type, setType] = useState<ValueType>(() => valueType(row.value));
	const known = fits(row.value, type) ? type : valueType(row.value);
	const problem = useProblem(pointer, known !== "fields");
	const id = useId();
	const label = row.name || "New field";
	const inner: FieldPlan = { name: row.name, label: `Value of ${label}`, kind: "any", required: true };
	const set = (value: Json | undefined) => onChange({ ...row, value: value ?? "" });
	return (
		<div data-pointer={pointer} className="flex flex-col gap-1 rounded-8 border bg-canvas p-2">
			<div className="flex gap-1">
				<TextInput
					aria-label={`Name of ${label}`}
					aria-invalid={twice || undefined}
					autoFocus={fresh}
					placeholder="Name"
					spellCheck={false}
					value={row.name}
					className="flex-1 font-mono text-12"
					onChange={(event) => onChange({ ...row, name: event.target.value })}
				/>
				{!plan.items && (
					<ValueTypeSelect
						type={known}
						label={`Type of ${label}`}
						className="w-24 shrink-0"
						onChange={(next) => {
							setType(next);
							set(converted(row.value, next));
						}}
					/>
				)}
				<IconButton icon={CloseIcon} label={`Remove ${label}`} onClick={onRemove} />
			</div>
			<FieldContext
				value={{ id: `${id}-value`, describedBy: problem && `${id}-error`, invalid: Boolean(problem), required: false }}
			>
				<Value plan={inner} value={row.value} onChange={set} pointer={pointer} root={root} type={known} />
			</FieldContext>
			{twice && <p className="text-12 text-failed">A field with this name already exists.</p>}
			{problem && (
				<p id={`${id}-error`} className="text-12 break-words text-failed">
					{problem}
				</p>
			)}
		</div>
	);
}
