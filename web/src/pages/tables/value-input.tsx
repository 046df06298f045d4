import { CodeEditor } from "@/ui/editor";
import { NativeSelect, TextArea, TextInput } from "@/ui/field";
import type { Column } from "./value";

export const timeExample = "2026-03-01T12:00:00Z";

export interface ValueInputProps {
	column: Column;
	value: string;
	onChange: (text: string) => void;
	/** For long texts: larger, and with line breaks. */
	large?: boolean;
}

/** ValueInput is the control for a value of a column, as text. Empty means null. */
export function ValueInput({ column, value, onChange, large }: ValueInputProps) {
	const { name, type, required } = column;
	if (type === "json") {
		return (
			<CodeEditor
				label={name}
				language="json"
				value={value}
				onChange={onChange}
				height={large ? 320 : 100}
				tabIndents={false}
				placeholder={required ? undefined : "null"}
			/>
		);
	}
	if (type === "boolean") {
		const none = { value: "", label: required ? "Choose a value" : "null" };
		return (
			<NativeSelect
				value={value}
				onChange={(event) => onChange(event.target.value)}
				options={[none, { value: "true", label: "true" }, { value: "false", label: "false" }]}
			/>
		);
	}
	if (type === "text") {
		return (
			<TextArea
				rows={large ? 14 : 1}
				value={value}
				onChange={(event) => onChange(event.target.value)}
				placeholder={required ? undefined : "null"}
				className={large ? "font-mono text-12" : "field-sizing-content"}
			/>
		);
	}
	return (
		<TextInput
			value={value}
			onChange={(event) => onChange(event.target.value)}
			inputMode={type === "number" ? "decimal" : undefined}
			placeholder={type === "time" ? timeExample : required ? undefined : "null"}
			spellCheck={false}
		/>
	);
}
