import { type ApiError, toApiError } from "@/api/error";
import { Checkbox, Field, NativeSelect, TextArea, TextInput } from "@/ui/field";
import { toast } from "@/ui/toast";
import type { InputField } from "./data";

interface FieldsProps {
	fields: readonly InputField[];
	values: Readonly<Record<string, string>>;
	onChange: (values: Record<string, string>) => void;
	error?: ApiError;
	/** Secrets are stored already: an empty field keeps them. */
	stored?: boolean;
}

/** Fields draws what a way to authenticate asks for. */
export function Fields({ fields, values, onChange, error, stored = false }: FieldsProps) {
	return fields.map((field) => (
		<Field
			key={field.name}
			label={field.title}
			required={field.required && !(stored && field.secret)}
			error={error?.field(`/fields/${field.name}`)}
			hint={hintOf(field, stored)}
		>
			<FieldControl
				field={field}
				value={values[field.name] ?? ""}
				onChange={(value) => onChange({ ...values, [field.name]: value })}
			/>
		</Field>
	));
}

function hintOf(field: InputField, stored: boolean): string | undefined {
	const keep = stored && field.secret ? "Leave it empty to keep the stored value." : "";
	return [field.help, keep].filter(Boolean).join(" ") || undefined;
}

interface ControlProps {
	field: InputField;
	value: string;
	onChange: (value: string) => void;
}

function FieldControl({ field, value, onChange }: ControlProps) {
	if (field.format === "services") return <Services field={field} value={value} onChange={onChange} />;
	if (field.enum.length > 0) {
		const none = { value: "", label: field.required ? "Choose…" : "Not set" };
		return (
			<NativeSelect
				value={value}
				onChange={(event) => onChange(event.target.value)}
				options={value === "" || !field.required ? [none, ...field.enum] : field.enum}
			/>
		);
	}
	const accept = accepted[field.format ?? ""];
	if (accept) return <FileText value={value} title={field.title} accept={accept} onChange={onChange} />;
	return (
		<TextInput
			type={field.secret ? "password" : "text"}
			autoComplete={field.secret ? "new-password" : "off"}
			spellCheck={false}
			value={value}
			placeholder={field.example ? `such as ${field.example}` : undefined}
			onChange={(event) => onChange(event.target.value)}
		/>
	);
}

/** Services is a choice of those that use the connection: their ids, separated by spaces. */
function Services({ field, value, onChange }: ControlProps) {
	const chosen = value.split(/[\s,]+/);
	const flip = (id: string, on: boolean) =>
		onChange(
			field.enum
				.map((one) => one.value)
				.filter((one) => (one === id ? on : chosen.includes(one)))
				.join(" "),
		);
	return (
		<fieldset aria-label={field.title} className="grid grid-cols-2 gap-x-3 gap-y-1 py-1">
			{field.enum.map((service) => (
				<Checkbox
					key={service.value}
					label={service.label}
					checked={chosen.includes(service.value)}
					onChange={(event) => flip(service.value, event.target.checked)}
				/>
			))}
		</fieldset>
	);
}

/** Which files people choose for a format. */
const accepted: Record<string, string> = { json: ".json,application/json", pem: ".pem,.crt,.cer,.key,text/plain" };

/** Larger files are neither keys nor certificates. */
const maxFile = 64 * 1024;

interface FileTextProps {
	value: string;
	title: string;
	accept?: string;
	onChange: (value: string) => void;
}

/** FileText takes the content of a small file, such as a key. */
export function FileText({ value, title, accept = accepted.pem, onChange }: FileTextProps) {
	const read = async (file: File | undefined) => {
		if (!file) return;
		try {
			if (file.size > maxFile) throw new Error(`“${file.name}” is too large for a key or a certificate.`);
			onChange(await file.text());
		} catch (thrown) {
			toast.error(toApiError(thrown));
		}
	};
	return (
		<div className="flex flex-col gap-2">
			<TextArea
				rows={4}
				value={value}
				spellCheck={false}
				autoComplete="off"
				className="font-mono text-12"
				placeholder="Paste the content, or choose the file below."
				onChange={(event) => onChange(event.target.value)}
			/>
			<input
				type="file"
				accept={accept}
				aria-label={`Choose a file for ${title}`}
				className="text-12 text-muted"
				onChange={(event) => void read(event.target.files?.[0])}
			/>
		</div>
	);
}
