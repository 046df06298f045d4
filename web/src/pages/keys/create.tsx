import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { CodeBlock } from "@/ui/code";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { OnceDialog } from "@/ui/once-dialog";
import { ErrorNote } from "@/ui/states";
import { fullTime } from "@/ui/time";
import { example, expiry, lifetimes, type Scope, scopes } from "./scopes";

interface Props {
	onOpenChange: (open: boolean) => void;
}

/** CreateDialog creates a key, then shows its value, which cannot be shown again. */
export function CreateDialog({ onOpenChange }: Props) {
	const [made, setMade] = useState<Schema["ApiKeyCreated"]>();
	return made ? (
		<CreatedDialog made={made} onOpenChange={onOpenChange} />
	) : (
		<KeyForm onMade={setMade} onOpenChange={onOpenChange} />
	);
}

function KeyForm({ onMade, onOpenChange }: Props & { onMade: (made: Schema["ApiKeyCreated"]) => void }) {
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
			description="For programs that call the API. Grant only the scopes it needs."
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
			<Field label="Name" required hint="The program that will use it." error={error?.field("/name")}>
				<TextInput
					value={name}
					onChange={(event) => setName(event.target.value)}
					maxLength={100}
					placeholder="Nightly import"
				/>
			</Field>
			<fieldset className="flex flex-col gap-2">
				<legend className="mb-1 font-medium">Scopes</legend>
				{scopes.map(({ scope, description: does }) => (
					<Checkbox
						key={scope}
						label={<code className="font-mono text-12">{scope}</code>}
						hint={does}
						checked={granted.includes(scope)}
						onChange={(event) => grant(scope, event.target.checked)}
					/>
				))}
				{granted.length === 0 && <p className="text-12 text-failed">Select at least one scope.</p>}
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

function CreatedDialog({ made, onOpenChange }: Props & { made: Schema["ApiKeyCreated"] }) {
	return (
		<OnceDialog
			title={`API key “${made.name}” created`}
			description={made.expires_at ? `It expires on ${fullTime(made.expires_at)}.` : "It never expires."}
			label="API key"
			value={made.key}
			onDone={() => onOpenChange(false)}
		>
			<div className="flex flex-col gap-1">
				<p className="font-medium">Try it</p>
				<CodeBlock wrap label="cURL example" code={example(location.origin, made.key, made.scopes)} />
			</div>
		</OnceDialog>
	);
}
