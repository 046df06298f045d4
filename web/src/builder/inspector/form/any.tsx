import { type ReactNode, useContext, useState } from "react";
import { spans } from "@/builder/expression/template";
import { isObject, type Json } from "@/builder/model";
import { CodeEditor } from "@/ui/editor";
import { NativeSelect, Switch, TextArea, TextInput } from "@/ui/field";
import { ExpressionField } from "../expression/field";
import { FormContext } from "./context";
import { MapControl } from "./map";
import type { FieldProps } from "./props";

export type ValueType = "text" | "number" | "boolean" | "fields" | "json";

const labels: Readonly<Record<ValueType, string>> = {
	text: "Text",
	number: "Number",
	boolean: "Yes or no",
	fields: "Fields",
	json: "JSON",
};

export function valueType(value: Json | undefined): ValueType {
	if (value === undefined || typeof value === "string") return "text";
	if (typeof value === "number") return "number";
	if (typeof value === "boolean") return "boolean";
	return isObject(value) ? "fields" : "json";
}

/** The value in another form, so that switching loses as little as can be. */
export function converted(value: Json | undefined, type: ValueType): Json | undefined {
	switch (type) {
		case "text":
			return value === undefined || typeof value === "string" ? value : JSON.stringify(value);
		case "number":
			return Number.isFinite(Number(value)) && value !== "" ? Number(value) : 0;
		case "boolean":
			return value === "true" || value === true;
		case "fields":
			return isObject(value) ? value : (parsed(value, isObject) ?? {});
		case "json":
			return typeof value === "string" ? (parsed(value, () => true) ?? value) : (value ?? {});
	}
}

function parsed(value: Json | undefined, fits: (value: Json) => boolean): Json | undefined {
	if (typeof value !== "string") return undefined;
	try {
		const read = JSON.parse(value) as Json;
		return fits(read) ? read : undefined;
	} catch {
		return undefined;
	}
}

export interface ValueTypeSelectProps {
	type: ValueType;
	onChange: (type: ValueType) => void;
	label: string;
	className?: string;
	types?: readonly ValueType[];
}

export function ValueTypeSelect({ type, onChange, label, className, types }: ValueTypeSelectProps) {
	const offered = types ?? (Object.keys(labels) as ValueType[]);
	return (
		<NativeSelect
			id={undefined}
			aria-label={label}
			className={className}
			value={type}
			onChange={(event) => onChange(event.target.value as ValueType)}
			options={offered.map((value) => ({ value, label: labels[value] }))}
		/>
	);
}

/** AnyControl edits a value of any type: which one is chosen above it. */
export function AnyControl(props: FieldProps) {
	const { plan, value, onChange } = props;
	const [type, setType] = useState(() => valueType(value));
	const known = value === undefined || fits(value, type) ? type : valueType(value);
	return (
		<div className="flex flex-col gap-1.5">
			<ValueTypeSelect
				type={known}
				label={`Type of ${plan.label}`}
				className="w-32"
				onChange={(next) => {
					setType(next);
					if (value !== undefined || next === "number" || next === "boolean") onChange(converted(value, next));
				}}
			/>
			<ValueControl {...props} type={known} lines />
		</div>
	);
}

/** Whether a value can be edited as a type; an object can as fields and as JSON. */
export function fits(value: Json, type: ValueType): boolean {
	return type === valueType(value) || type === "json";
}

/** ValueControl edits a value whose type is settled. */
export function ValueControl(props: FieldProps & { type: ValueType; lines?: boolean }): ReactNode {
	const { plan, value, onChange, type, pointer, lines } = props;
	const [typing, setTyping] = useState(false);
	const dynamic = typeof value === "string" && spans(value).length > 0;
	const [wanted, setWanted] = useState(dynamic);
	if (dynamic && !wanted) setWanted(true);
	switch (type) {
		case "number":
			return (
				<TextInput
					type="number"
					step="any"
					aria-label={plan.label}
					value={typeof value === "number" ? value : ""}
					onChange={(event) => onChange(event.target.value === "" ? 0 : event.target.valueAsNumber)}
				/>
			);
		case "boolean":
			return <Switch label={value === true ? "Yes" : "No"} checked={value === true} onChange={onChange} />;
		case "fields":
			return <MapControl {...props} />;
		case "json":
			return <JsonControl {...props} />;
		default: {
			const text = typeof value === "string" ? value : "";
			if (wanted) {
				return (
					<ExpressionField
						label={plan.label}
						value={text}
						onChange={onChange}
						pointer={pointer}
						form="template"
						lines={lines}
						autoFocus={typing}
					/>
				);
			}
			const Input = lines ? TextArea : TextInput;
			return (
				<Input
					{...(lines && { rows: 3 })}
					aria-label={plan.label}
					value={text}
					onChange={(event) => {
						setTyping(true);
						onChange(event.target.value);
					}}
				/>
			);
		}
	}
}

/** JsonControl edits a value as text. While the text says nothing the value stays as it was. */
export function JsonControl({ plan, value, onChange }: FieldProps) {
	const { readOnly } = useContext(FormContext);
	const [text, setText] = useState(() => written(value));
	const [committed, setCommitted] = useState(value);
	const [wrong, setWrong] = useState<string>();
	if (committed !== value) {
		setCommitted(value);
		if (JSON.stringify(value) !== JSON.stringify(parsed(text, () => true))) setText(written(value));
	}
	return (
		<>
			<CodeEditor
				label={plan.label}
				language="json"
				value={text}
				readOnly={readOnly}
				lineNumbers={false}
				height={Math.min(320, Math.max(72, 20 * text.split("\n").length + 14))}
				onChange={(next) => {
					setText(next);
					const read = next.trim() === "" ? undefined : parsed(next, () => true);
					const broken = next.trim() !== "" && read === undefined;
					setWrong(broken ? "This is not JSON yet." : undefined);
					if (!broken) onChange(read);
				}}
			/>
			{wrong && (
				<p role="status" className="text-12 text-failed">
					{wrong}
				</p>
			)}
		</>
	);
}

function written(value: Json | undefined): string {
	return value === undefined ? "" : JSON.stringify(value, null, 2);
}
