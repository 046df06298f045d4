import { useState } from "react";
import { isObject, type Json } from "@/builder/model";
import { NativeSelect } from "@/ui/field";
import { Control } from "./control";
import { planField } from "./plan";
import type { FieldProps } from "./props";
import { type JsonSchema, typesOf } from "./schema";

/** VariantsControl edits a value that takes one of several forms: which one is chosen above it. */
export function VariantsControl({ plan, value, onChange, pointer, root }: FieldProps) {
	const variants = plan.variants ?? [];
	const [chosen, setChosen] = useState(() =>
		variantOf(
			value,
			variants.map((variant) => variant.schema),
		),
	);
	const variant = variants[chosen];
	return (
		<div className="flex flex-col gap-1.5">
			<NativeSelect
				value={String(chosen)}
				options={variants.map((one, i) => ({ value: String(i), label: one.label }))}
				onChange={(event) => {
					setChosen(Number(event.target.value));
					onChange(undefined);
				}}
			/>
			{variant && (
				<Control
					plan={{ ...planField(plan.name, variant.schema, root, true), label: plan.label }}
					value={value}
					onChange={onChange}
					pointer={pointer}
					root={root}
				/>
			)}
		</div>
	);
}

/** The form that a value has: the first whose type and required members it fits. */
export function variantOf(value: Json | undefined, schemas: readonly JsonSchema[]): number {
	const fits = schemas.findIndex((schema) => {
		const types = typesOf(schema);
		if (!isObject(value)) return types.includes(Array.isArray(value) ? "array" : typeof value);
		if (types.length > 0 && !types.includes("object")) return false;
		return (schema.required ?? []).every((name) => Object.hasOwn(value, name));
	});
	return Math.max(0, fits);
}
