import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError, toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { toast } from "@/ui/toast";
import { nameProblem } from "./value";

const nameTaken = (name: string) =>
	new ApiError(409, "name_taken", "The name is already in use.", [
		{ pointer: "/name", message: `“${name}” already exists. Change its value in the list.` },
	]);

/** assertNameFree throws if the name exists, because creating must not overwrite. */
async function assertNameFree(name: string, read: Promise<unknown>): Promise<void> {
	const found = await read.then(
		() => true,
		(thrown) => {
			if (toApiError(thrown).status === 404) return false;
			throw thrown;
		},
	);
	if (found) throw nameTaken(name);
}

export interface ValueDialogProps<V> {
	noun: "secret" | "variable";
	/** The root that expressions use. */
	root: "secrets" | "vars";
	/** The name of the existing item; undefined to create one. */
	given?: string;
	title: string;
	description: string;
	submit: string;
	/** The toast shown when the value is saved. */
	done: (name: string) => string;
	/** Whether there is a value to save. */
	complete?: boolean;
	value: () => { value: V } | { problem: string };
	find: (name: string) => Promise<unknown>;
	save: (name: string, value: V) => Promise<unknown>;
	/** Renders the field of the value, with its error. */
	children: (error: string | undefined) => ReactNode;
	onOpenChange: (open: boolean) => void;
}

/** ValueDialog creates a secret or variable, or changes its value. */
export function ValueDialog<V>(props: ValueDialogProps<V>) {
	const { noun, root, given, complete = true, onOpenChange } = props;
	const [name, setName] = useState(given ?? "");
	const [valueProblem, setValueProblem] = useState<string>();
	const client = useQueryClient();
	const save = useMutation({
		mutationFn: async (value: V) => {
			if (!given) await assertNameFree(name, props.find(name));
			return props.save(name, value);
		},
		meta: { quiet: true },
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: [`${noun}s`] });
			toast.done(props.done(name));
			onOpenChange(false);
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const placed = error?.field("/name") ?? error?.field("/value");
	const problem = nameProblem(name);
	const ready = name !== "" && !problem && complete;
	const submit = () => {
		const read = props.value();
		setValueProblem("problem" in read ? read.problem : undefined);
		if (ready && "value" in read) save.mutate(read.value);
	};
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title={props.title}
			description={props.description}
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						{props.submit}
					</Button>
				</>
			}
		>
			{!given && <NameField name={name} onChange={setName} root={root} error={problem ?? error?.field("/name")} />}
			{props.children(valueProblem ?? error?.field("/value"))}
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
