import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { SecretOnce } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { fullTime } from "@/ui/time";
import { example, expiry, lifetimes, type Scope, scopes } from "./scopes";

interface Props {
	onOpenChange: (open: boolean) => void;
}

/** CreateDialog makes a key, then shows its value: the one time that it can be seen. */
export function CreateDialog({ onOpenChange }: Props) {
	const [made, setMade] = useState<Schema["ApiKeyCreated"]>();
	return made ? (
		<MadeDialog made={made} onOpenChange={onOpenChange} />
	) : (
		<AskDialog onMade={setMade} onOpenChange={onOpenChange} />
	);
}

function AskDialog({ onMade, onOpenChange }: Props & { onMade: (made: Schema["ApiKeyCreated"]) => void }) {
	const [name, setName] = useState("");
	const [granted, setGranted] = useState<Scope[]>(["read"]);
	const [lifetime, setLifetime] = useState("90");
	const [date, setDate] = useState("");
	const client = useQueryClient();
	const create = useMutation({
		mutationFn: () =>
			got(
				api.POST("/v1/api-keys", {
					body: { name: name.trim(), scopes: granted, expires_at: expiry(lifetime, date, Date.now()) },
				}),
			),
		meta: { quiet: true },
		onSuccess: (made) => {
			onMade(made);
			return client.invalidateQueries({ queryKey: ["keys"] });
		},
	});
	const error = create.error ? toApiError(create.error) : undefined;
	const placed = error?.field("/name") ?? error?.field("/expires_at");
	const ready = name.trim() !== "" && granted.length > 0 && (lifetime !== "date" || date !== "");
	const grant = (scope: Scope, on: boolean) =>
		setGranted(on ? [...granted, scope] : granted.filter((other) => other !== scope));
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title="New API key"
			description="For programs that use the API. Give it no more than it needs."
			guarded
			onSubmit={() => ready && create.mutate()}
			actions={
				<>
					<Button onClick={() => onOpenChange(false)}>Cancel</Button>
					<Button type="submit" kind="primary" busy={create.isPending} disabled={!ready}>
						Create key
					</Button>
				</>
			}
		>
			<Field
				label="Name"
				required
				hint="What will use it, so that you recognise it later."
				error={error?.field("/name")}
			>
				<TextInput
					value={name}
					onChange={(event) => setName(event.target.value)}
					maxLength={100}
					placeholder="Nightly import"
				/>
			</Field>
			<fieldset className="flex flex-col gap-2">
				<legend className="mb-1 font-medium">Scopes</legend>
				{scopes.map(({ scope, does }) => (
					<Checkbox
						key={scope}
						label={<code className="font-mono text-12">{scope}</code>}
						hint={does}
						checked={granted.includes(scope)}
						onChange={(event) => grant(scope, event.target.checked)}
					/>
				))}
				{granted.length === 0 && <p className="text-12 text-failed">Choose at least one.</p>}
			</fieldset>
			<div className="flex flex-wrap gap-3">
				<Field label="Expires" className="flex-1 basis-40" error={error?.field("/expires_at")}>
					<NativeSelect options={lifetimes} value={lifetime} onChange={(event) => setLifetime(event.target.value)} />
				</Field>
				{lifetime === "date" && (
					<Field label="Last day" required className="flex-1 basis-40">
						<TextInput type="date" value={date} onChange={(event) => setDate(event.target.value)} />
					</Field>
				)}
			</div>
			{error && !placed && <ErrorNote error={error} />}
		</Dialog>
	);
}

function MadeDialog({ made, onOpenChange }: Props & { made: Schema["ApiKeyCreated"] }) {
	return (
		<Dialog
			open
			onOpenChange={onOpenChange}
			title={`“${made.name}” is ready`}
			description={made.expires_at ? `It works until ${fullTime(made.expires_at)}.` : "It does not expire."}
			guarded
			actions={
				<Button kind="primary" onClick={() => onOpenChange(false)}>
					I have stored it
				</Button>
			}
		>
			<SecretOnce label="API key" value={made.key} />
			<div className="flex flex-col gap-1">
				<p className="font-medium">Try it</p>
				<CodeBlock wrap label="cURL example" code={example(location.origin, made.key, made.scopes)} />
			</div>
		</Dialog>
	);
}
