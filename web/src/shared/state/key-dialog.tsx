import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, toApiError } from "@/api/error";
import { indent, isJson } from "@/api/raw-json";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { Dialog } from "@/ui/dialog";
import { CodeEditor } from "@/ui/editor";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { fullTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { putKey, queryKey, type StateKey } from "./data";

export interface KeyDialogProps {
	/** The workflow that the key belongs to; empty for the workspace. */
	workflow: string;
	/** The key to change; undefined to create one. */
	item?: StateKey;
	/** Shows the key without changing it. */
	readOnly?: boolean;
	onClose: () => void;
}

/** KeyDialog creates a key, or shows and changes it. */
export function KeyDialog({ readOnly, ...props }: KeyDialogProps) {
	if (!readOnly || !props.item) return <EditDialog {...props} />;
	return (
		<Dialog open onOpenChange={(open) => !open && props.onClose()} title={props.item.key} width="large">
			<CodeBlock code={indent(props.item.value)} label="Value" wrap />
		</Dialog>
	);
}

type Expiry = "never" | "keep" | "after";

/** expiresIn returns the duration to send. Keeping an expiry means to set it again, because storing a value removes it. */
function expiresIn(expiry: Expiry, after: string, item: StateKey | undefined): string | undefined {
	if (expiry === "after") return after.trim();
	if (expiry === "never" || !item?.expires_at) return undefined;
	return `${Math.max(1, Math.round((Date.parse(item.expires_at) - Date.now()) / 1000))}s`;
}

function EditDialog({ workflow, item, onClose }: Omit<KeyDialogProps, "readOnly">) {
	const [key, setKey] = useState(item?.key ?? "");
	const [text, setText] = useState(item ? indent(item.value) : '""');
	const [expiry, setExpiry] = useState<Expiry>(item?.expires_at ? "keep" : "never");
	const [after, setAfter] = useState("24h");
	const [problem, setProblem] = useState<string>();
	const client = useQueryClient();
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: async () => {
			const value = text.trim();
			const done = await putKey({
				workflow,
				key,
				value,
				expiresIn: expiresIn(expiry, after, item),
				ifAbsent: !item,
			});
			if (!done) {
				const message = `“${key}” already exists. Change its value in the list.`;
				throw new ApiError(409, "key_exists", message, [{ pointer: "/key", message }]);
			}
		},
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: queryKey(workflow) });
			toast.done(`“${key}” was saved`);
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const placed = error?.field("/key") ?? error?.field("/value") ?? error?.field("/expires_in");
	const submit = () => {
		setProblem(isJson(text) ? undefined : "This is not valid JSON. Put text in quotes.");
		if (key !== "" && isJson(text)) save.mutate();
	};
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={item ? `Edit “${item.key}”` : "New key"}
			description="Everyone with read access can see the value. Store passwords as secrets instead."
			guarded
			onSubmit={submit}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={key === ""}>
						Save key
					</Button>
				</>
			}
		>
			{!item && (
				<Field label="Name" required error={error?.field("/key")} hint="Letters, digits and _ . : @ + = , ~ -">
					<TextInput
						value={key}
						onChange={(event) => setKey(event.target.value.trim())}
						spellCheck={false}
						maxLength={200}
						className="font-mono text-12"
					/>
				</Field>
			)}
			<Field
				label="Value"
				error={problem ?? error?.field("/value")}
				hint="Any JSON value: text in quotes, a number, a list or an object."
			>
				<CodeEditor label="Value" language="json" value={text} onChange={setText} height={160} tabIndents={false} />
			</Field>
			<div className="flex flex-wrap items-start gap-3">
				<Field label="Expires" className="min-w-52 flex-1">
					<NativeSelect
						value={expiry}
						onChange={(event) => setExpiry(event.target.value as Expiry)}
						options={[
							{ value: "never", label: "Never" },
							...(item?.expires_at ? [{ value: "keep", label: fullTime(item.expires_at) }] : []),
							{ value: "after", label: "After some time" },
						]}
					/>
				</Field>
				{expiry === "after" && (
					<Field
						label="Time from now"
						error={error?.field("/expires_in")}
						hint="Such as 90s, 15m, 2h or 3d."
						className="min-w-32 flex-1"
					>
						<TextInput value={after} onChange={(event) => setAfter(event.target.value)} spellCheck={false} />
					</Field>
				)}
			</div>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}
