import { type ComponentType, useState } from "react";
import { type JsonSchema, typesOf } from "@/shared/listed/schema";
import { isObject, type Json } from "@/shared/workflow/model";
import { NativeSelect } from "@/ui/field";
import { planField } from "./plan";
import type { NestingProps } from "./props";

interface VariantsControlProps extends NestingProps {
	/** Edits the value with the selected variant. */
	Variant: ComponentType<NestingProps>;
}

/** VariantsControl edits a value with several alternative schemas, with a select above it. */
export function VariantsControl({ plan, value, onChange, pointer, root, Form, Variant }: VariantsControlProps) {
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
				<Variant
					plan={{ ...planField(plan.name, variant.schema, root, true), label: plan.label }}
					value={value}
					onChange={onChange}
					pointer={pointer}
					root={root}
					Form={Form}
				/>
			)}
		</div>
	);
}

/** The index of the first variant whose type and required fields match the value. */
export function variantOf(value: Json | undefined, schemas: readonly JsonSchema[]): number {
	const fits = schemas.findIndex((schema) => {
		const types = typesOf(schema);
		if (!isObject(value)) return types.includes(Array.isArray(value) ? "array" : typeof value);
		if (types.length > 0 && !types.includes("object")) return false;
		return (schema.required ?? []).every((name) => Object.hasOwn(value, name));
	});
	return Math.max(0, fits);
}
