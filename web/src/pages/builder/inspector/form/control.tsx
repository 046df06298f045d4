import { lazy, Suspense, useContext } from "react";
import { CodeEditor } from "@/ui/editor";
import { Checkbox, NativeSelect, Switch, TextArea, TextInput } from "@/ui/field";
import { Skeleton } from "@/ui/states";
import { AnyControl, ValueControl } from "./any";
import { FormContext } from "./context";
import { ListControl } from "./list";
import { MapControl } from "./map";
import { ObjectControl } from "./object";
import type { FieldProps, NestingProps } from "./props";
import { VariantsControl } from "./variants";
import { WorkflowControl } from "./workflow";

const ListedControl = lazy(() => import("@/shared/listed/control"));
const FieldsControl = lazy(() => import("../listed/fields"));

/** Control renders the control for a plain value. */
export function Control(props: NestingProps) {
	switch (props.plan.kind) {
		case "lines":
			return <LinesControl {...props} />;
		case "code":
			return <CodeControl {...props} />;
		case "number":
			return <NumberControl {...props} />;
		case "boolean":
			return <BooleanControl {...props} />;
		case "choice":
			return <ChoiceControl {...props} />;
		case "choices":
			return <ChoicesControl {...props} />;
		case "map":
			return <MapControl {...props} Value={ValueControl} />;
		case "object":
			return <ObjectControl {...props} />;
		case "list":
			return <ListControl {...props} Item={Control} />;
		case "variants":
			return <VariantsControl {...props} Variant={Control} />;
		case "workflow":
			return <WorkflowControl {...props} />;
		case "any":
			return <AnyControl {...props} />;
		case "listed":
			return (
				<Suspense fallback={<Skeleton className="h-8 w-full" />}>
					<ListedControl {...props} />
				</Suspense>
			);
		case "fields":
			return (
				<Suspense fallback={<Skeleton className="h-8 w-full" />}>
					<FieldsControl {...props} />
				</Suspense>
			);
		default:
			return <TextControl {...props} />;
	}
}

/** The value as text; other types as JSON. */
function shown(value: FieldProps["value"]): string {
	if (value === undefined || value === null) return "";
	return typeof value === "string" ? value : JSON.stringify(value);
}

function TextControl({ plan, value, onChange }: FieldProps) {
	return (
		<TextInput
			aria-label={plan.label}
			value={shown(value)}
			placeholder={plan.placeholder}
			spellCheck={false}
			onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
		/>
	);
}

function LinesControl({ plan, value, onChange }: FieldProps) {
	return (
		<TextArea
			rows={Math.min(20, Math.max(3, shown(value).split("\n").length))}
			aria-label={plan.label}
			value={shown(value)}
			placeholder={plan.placeholder}
			onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
		/>
	);
}

function CodeControl({ plan, value, onChange }: FieldProps) {
	const { readOnly } = useContext(FormContext);
	return (
		<CodeEditor
			label={plan.label}
			language="javascript"
			value={shown(value)}
			readOnly={readOnly}
			height={Math.min(400, Math.max(114, 20 * shown(value).split("\n").length + 54))}
			placeholder="return { total: input.lines.length };"
			onChange={(text) => onChange(text === "" ? undefined : text)}
		/>
	);
}

function NumberControl({ plan, value, onChange }: FieldProps) {
	return (
		<TextInput
			type="number"
			aria-label={plan.label}
			className="tabular"
			value={typeof value === "number" ? value : ""}
			placeholder={plan.placeholder}
			min={plan.minimum}
			max={plan.maximum}
			step={plan.whole ? 1 : "any"}
			onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.valueAsNumber)}
		/>
	);
}

function BooleanControl({ plan, value, onChange }: FieldProps) {
	const on = typeof value === "boolean" ? value : plan.default === true;
	return (
		<div className="flex h-8 items-center gap-2">
			<Switch label={plan.label} labelHidden checked={on} onChange={onChange} />
			<span aria-hidden="true" className="text-muted">
				{on ? "Yes" : "No"}
				{value === undefined && plan.default !== undefined && " (default)"}
			</span>
		</div>
	);
}

function ChoiceControl({ plan, value, onChange }: FieldProps) {
	const standard = plan.options?.find((option) => option.value === plan.default);
	const empty = standard ? `${standard.label} (default)` : plan.required ? "Choose…" : "Not set";
	const chosen = typeof value === "string" ? value : "";
	const hint = (plan.options ?? []).find((option) => option.value === (chosen || plan.default))?.hint;
	const options = (plan.options ?? []).filter((option) => option !== standard || option.value === chosen);
	return (
		<>
			<NativeSelect
				aria-label={plan.label}
				value={chosen}
				onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value)}
				options={[{ value: "", label: empty }, ...options.map(({ value, label }) => ({ value, label }))]}
			/>
			{hint && <p className="text-12">{hint}</p>}
		</>
	);
}

function ChoicesControl({ plan, value, onChange }: FieldProps) {
	const chosen = Array.isArray(value) ? value.map(String) : [];
	const flip = (option: string, on: boolean) => {
		const next = (plan.options ?? [])
			.map((one) => one.value)
			.filter((one) => (one === option ? on : chosen.includes(one)));
		onChange(next.length > 0 ? next : undefined);
	};
	return (
		<fieldset aria-label={plan.label} className="grid grid-cols-2 gap-x-3 gap-y-1 py-1">
			{plan.options?.map((option) => (
				<Checkbox
					key={option.value}
					label={option.label}
					checked={chosen.includes(option.value)}
					onChange={(event) => flip(option.value, event.target.checked)}
				/>
			))}
		</fieldset>
	);
}
