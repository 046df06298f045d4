import { type ReactNode, useContext, useState } from "react";
import { spans } from "@/shared/workflow/expression/template";
import type { Json } from "@/shared/workflow/model";
import { CodeEditor } from "@/ui/editor";
import { Switch, TextArea, TextInput } from "@/ui/field";
import { ExpressionField } from "../expression/field";
import { ForeignHint } from "../expression/foreign-hint";
import { FormContext } from "./context";
import { MapControl } from "./map";
import type { FieldProps } from "./props";
import { converted, fits, parsed, type ValueControlProps, ValueTypeSelect, valueType } from "./value-type";

/** AnyControl edits a value of any type, with a type select above it. */
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

/** ValueControl edits a value of a given type. */
export function ValueControl(props: ValueControlProps): ReactNode {
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
			return <MapControl {...props} Value={ValueControl} />;
		case "json":
			return <JsonControl {...props} />;
		default: {
			const text = typeof value === "string" ? value : "";
			const type = (next: string) => {
				setTyping(true);
				onChange(next);
			};
			const Input = lines ? TextArea : TextInput;
			return (
				<div className="flex min-w-0 flex-col gap-1">
					{wanted ? (
						<ExpressionField
							label={plan.label}
							value={text}
							onChange={onChange}
							pointer={pointer}
							form="template"
							lines={lines}
							autoFocus={typing}
						/>
					) : (
						<Input
							{...(lines && { rows: 3 })}
							aria-label={plan.label}
							value={text}
							onChange={(event) => type(event.target.value)}
						/>
					)}
					<ForeignHint value={text} onChange={type} />
				</div>
			);
		}
	}
}

/** JsonControl edits a value as JSON text. Invalid text does not change the value. */
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
					setWrong(broken ? "This is not valid JSON yet." : undefined);
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
