import { isObject, type Json } from "@/shared/workflow/model";
import { NativeSelect } from "@/ui/field";
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

/** Converts a value to another type, preserving as much as possible. */
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

/** parsed parses JSON text and returns the value if it fits. */
export function parsed(value: Json | undefined, fits: (value: Json) => boolean): Json | undefined {
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

/** Whether a value can be edited as a type; objects can be edited as fields or JSON. */
export function fits(value: Json, type: ValueType): boolean {
	return type === valueType(value) || type === "json";
}

export interface ValueControlProps extends FieldProps {
	type: ValueType;
	lines?: boolean;
}
