import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { CodeEditor } from "@/ui/editor";
import { Field, TextArea } from "@/ui/field";
import { readValue } from "./value";
import { ValueDialog } from "./value-dialog";

interface Props {
	onOpenChange: (open: boolean) => void;
}

const at = (name: string) => ({ params: { path: { name } } });

/** SecretDialog creates a secret, or replaces the value of the named one. */
export function SecretDialog({ name: given, onOpenChange }: Props & { name?: string }) {
	const [value, setValue] = useState("");
	return (
		<ValueDialog
			noun="secret"
			root="secrets"
			given={given}
			title={given ? `Replace the value of “${given}”` : "New secret"}
			description={
				given
					? "Steps that start from now on use the new value. The old value cannot be recovered."
					: "The value is encrypted. Nobody can view it again, here or through the API."
			}
			submit={given ? "Replace value" : "Save secret"}
			done={(name) => (given ? `The value of “${name}” was replaced` : `“${name}” was saved`)}
			complete={value !== ""}
			value={() => ({ value })}
			find={(name) => api.GET("/v1/secrets/{name}", at(name))}
			save={(name, body) => got(api.PUT("/v1/secrets/{name}", { ...at(name), body: { value: body } }))}
			onOpenChange={onOpenChange}
		>
			{(error) => (
				<Field label="Value" required error={error} hint="At least 4 characters.">
					<TextArea
						value={value}
						onChange={(event) => setValue(event.target.value)}
						autoComplete="off"
						spellCheck={false}
						className="font-mono text-12"
					/>
				</Field>
			)}
		</ValueDialog>
	);
}

/** VariableDialog creates a variable or changes its value. */
export function VariableDialog({ variable, onOpenChange }: Props & { variable?: Schema["Variable"] }) {
	const [text, setText] = useState(variable ? JSON.stringify(variable.value, null, 2) : '""');
	return (
		<ValueDialog
			noun="variable"
			root="vars"
			given={variable?.name}
			title={variable ? `Edit “${variable.name}”` : "New variable"}
			description="Everyone with read access can see the value. Store passwords as secrets instead."
			submit="Save variable"
			done={(name) => `“${name}” was saved`}
			value={() => readValue(text)}
			find={(name) => api.GET("/v1/variables/{name}", at(name))}
			save={(name, value) =>
				got(api.PUT("/v1/variables/{name}", { ...at(name), body: { value } as Schema["VariablePut"] }))
			}
			onOpenChange={onOpenChange}
		>
			{(error) => (
				<Field label="Value" error={error} hint="Any JSON value: text in quotes, a number, a list or an object.">
					<CodeEditor label="Value" language="json" value={text} onChange={setText} height={160} tabIndents={false} />
				</Field>
			)}
		</ValueDialog>
	);
}
