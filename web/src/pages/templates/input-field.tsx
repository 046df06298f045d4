import { ConnectionSelect } from "@/shared/connections/select";
import { WorkflowSelect } from "@/shared/search/workflow-select";
import type { Json } from "@/shared/workflow/model";
import { Field, NativeSelect, TextArea, TextInput } from "@/ui/field";
import { AccountInput } from "./account-input";
import type { Input, Values } from "./values";

interface InputFieldProps {
	input: Input;
	values: Values;
	error?: string;
	/** The names of services by their ids. */
	serviceNames: ReadonlyMap<string, string>;
	onChange: (value: Json | undefined) => void;
}

/** InputField asks for the value of an input of a template. */
export function InputField(props: InputFieldProps) {
	const { input, error } = props;
	return (
		<Field label={input.title} hint={hintOf(props)} error={error} required={input.required}>
			<Control {...props} />
		</Field>
	);
}

/** A connection that several services share says which of them it is for. */
function hintOf({ input: { help, services }, serviceNames }: InputFieldProps): string | undefined {
	if (!services || services.length < 2) return help ?? undefined;
	const names = services.map((id) => serviceNames.get(id) ?? id);
	return `${help ? `${help} ` : ""}It is used for ${new Intl.ListFormat("en").format(names)}.`;
}

function Control({ input, values, onChange }: InputFieldProps) {
	const { name, type, example, options, integration, services } = input;
	const value = values[name];
	const text = {
		value: String(value ?? ""),
		placeholder: example ?? undefined,
		onChange: (event: { target: { value: string } }) => onChange(event.target.value),
	};
	switch (type) {
		case "connection":
			return (
				<ConnectionSelect
					value={text.value}
					integration={integration ?? ""}
					service={services?.length === 1 ? (services[0] as string) : (integration ?? "")}
					onChange={onChange}
				/>
			);
		case "account":
			return (
				<AccountInput
					input={input}
					values={values}
					connection={String(values[input.lists?.connection ?? ""] ?? "")}
					onChange={onChange}
				/>
			);
		case "choice":
			return (
				<NativeSelect
					value={text.value}
					onChange={text.onChange}
					options={[...(text.value === "" ? [{ value: "", label: "Choose one" }] : []), ...(options ?? [])]}
				/>
			);
		case "workflow":
			return <WorkflowSelect value={text.value} onChange={onChange} none="Choose a workflow" required />;
		case "text":
			return <TextArea {...text} />;
		case "number":
		case "integer":
			return <TextInput {...text} inputMode={type === "integer" ? "numeric" : "decimal"} />;
		default:
			return <TextInput {...text} inputMode={type === "email" || type === "url" ? type : "text"} maxLength={10_000} />;
	}
}
