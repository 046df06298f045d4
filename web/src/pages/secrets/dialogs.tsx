import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { ApiError, toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { Field, TextArea, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { nameProblem, readValue } from "./value";

const taken = (name: string) =>
	new ApiError(409, "name_taken", "The name is in use.", [
		{ pointer: "/name", message: `“${name}” exists already. Change it in the list.` },
	]);

/** free fails when something answers at a name: to create must not replace. */
async function free(name: string, read: Promise<unknown>): Promise<void> {
	const found = await read.then(
		() => true,
		(thrown) => {
			if (toApiError(thrown).status === 404) return false;
			throw thrown;
		},
	);
	if (found) throw taken(name);
}

interface Props {
	onOpenChange: (open: boolean) => void;
}

/** SecretDialog creates a secret, or gives the named one a new value. */
export function SecretDialog({ name: given, onOpenChange }: Props & { name?: string }) {
	const [name, setName] = useState(given ?? "");
	const [value, setValue] = useState("");
	const client = useQueryClient();
	const save = useMutation({
		mutationFn: async () => {
			const params = { path: { name } };
			if (!given) await free(name, api.GET("/v1/secrets/{name}", { params }));
			return got(api.PUT("/v1/secrets/{name}", { params, body: { value } }));
		},
		meta: { quiet: true },
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["secrets"] });
			toast.done(given ? `“${name}” has a new value` : `“${name}” is kept`);
			onOpenChange(false);
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const placed = error?.field("/name") ?? error?.field("/value");
	const problem = nameProblem(name);
	const ready = name !== "" && !problem && value !== "";
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title={given ? `Replace the value of “${given}”` : "New secret"}
			description={
				given
					? "Steps that start from now on use the new value. The old one cannot be seen or brought back."
					: "The value is sealed. Nobody can see it again, here or over the API."
			}
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						{given ? "Replace value" : "Save secret"}
					</Button>
				</>
			}
		>
			{!given && <NameField name={name} onChange={setName} root="secrets" error={problem ?? error?.field("/name")} />}
			<Field label="Value" required error={error?.field("/value")} hint="At least 4 characters.">
				<TextArea
					value={value}
					onChange={(event) => setValue(event.target.value)}
					autoComplete="off"
					spellCheck={false}
					className="font-mono text-12"
				/>
			</Field>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}

/** VariableDialog creates a variable or changes its value. */
export function VariableDialog({ variable, onOpenChange }: Props & { variable?: Schema["Variable"] }) {
	const [name, setName] = useState(variable?.name ?? "");
	const [text, setText] = useState(variable ? JSON.stringify(variable.value, null, 2) : '""');
	const [unread, setUnread] = useState<string>();
	const client = useQueryClient();
	const save = useMutation({
		mutationFn: async (value: unknown) => {
			const params = { path: { name } };
			if (!variable) await free(name, api.GET("/v1/variables/{name}", { params }));
			const body = { value } as Schema["VariablePut"];
			return got(api.PUT("/v1/variables/{name}", { params, body }));
		},
		meta: { quiet: true },
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["variables"] });
			toast.done(`“${name}” was saved`);
			onOpenChange(false);
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const placed = error?.field("/name") ?? error?.field("/value");
	const problem = nameProblem(name);
	const submit = () => {
		const read = readValue(text);
		setUnread("problem" in read ? read.problem : undefined);
		if (name !== "" && !problem && "value" in read) save.mutate(read.value);
	};
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title={variable ? `Edit “${variable.name}”` : "New variable"}
			description="Everybody who may read sees the value: a password belongs into a secret."
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={name === "" || Boolean(problem)}>
						Save variable
					</Button>
				</>
			}
		>
			{!variable && <NameField name={name} onChange={setName} root="vars" error={problem ?? error?.field("/name")} />}
			<Field
				label="Value"
				error={unread ?? error?.field("/value")}
				hint="Any JSON: a text in quotes, a number, a list, an object."
			>
				<CodeEditor label="Value" language="json" value={text} onChange={setText} height={160} tabIndents={false} />
			</Field>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}

interface NameProps {
	name: string;
	onChange: (name: string) => void;
	root: "secrets" | "vars";
	error?: string;
}

function NameField({ name, onChange, root, error }: NameProps) {
	return (
		<Field
			label="Name"
			required
			error={error}
			hint={
				<>
					Workflows refer to it as <code className="font-mono">{`\${{ ${root}.${name || "name"} }}`}</code>
				</>
			}
		>
			<TextInput
				value={name}
				onChange={(event) => onChange(event.target.value.trim())}
				spellCheck={false}
				maxLength={64}
				className="font-mono text-12"
			/>
		</Field>
	);
}
