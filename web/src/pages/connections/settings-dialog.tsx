import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { type Connection, usePeople } from "@/shared/connections/data";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote, ErrorState, SkeletonRows } from "@/ui/states";
import { toast } from "@/ui/toast";

type Access = Schema["ConnectionAccess"];

const accesses: { value: Access; label: string }[] = [
	{ value: "everyone", label: "Everyone in the workspace" },
	{ value: "members", label: "Chosen members" },
	{ value: "owner", label: "Only whoever created it" },
];

/** SettingsDialog renames a connection and sets who may use it. */
export function SettingsDialog({ connection, onClose }: { connection: Connection; onClose: () => void }) {
	const { id } = connection;
	const [name, setName] = useState(connection.name);
	const [access, setAccess] = useState<Access>(connection.access);
	const [members, setMembers] = useState(connection.members);
	const client = useQueryClient();
	const save = useMutation({
		meta: { quiet: true },
		mutationFn: () => {
			const body = { name: name.trim(), access, members: access === "members" ? members : [] };
			return got(api.PATCH("/v1/connections/{id}", { params: { path: { id } }, body }));
		},
		onSuccess: async () => {
			await client.invalidateQueries({ queryKey: ["connections"] });
			toast.done("The connection was saved");
			onClose();
		},
	});
	const error = save.error ? toApiError(save.error) : undefined;
	const nameError = error?.field("/name") ?? (error?.code === "connection_exists" ? error.message : undefined);
	const accessError =
		error?.field("/access") ?? error?.fields.find(({ pointer }) => pointer.startsWith("/members"))?.message;
	// Nobody owns what an API key has created.
	const owned = connection.created_by?.startsWith("usr_");
	const ready = name.trim() !== "" && (access !== "members" || members.length > 0);
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title={`Name and access of “${connection.name}”`}
			guarded
			onSubmit={() => ready && save.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={save.isPending} disabled={!ready}>
						Save
					</Button>
				</>
			}
		>
			<Field
				label="Name"
				required
				error={nameError}
				hint="Workflows that use an earlier name keep working, and get the new one when they are next saved."
			>
				<TextInput
					value={name}
					maxLength={63}
					spellCheck={false}
					className="font-mono text-12"
					onChange={(event) => setName(event.target.value)}
				/>
			</Field>
			<Field
				label="May be used by"
				error={accessError}
				hint="Who can add it to steps and triggers, change those that use it, and test it. Running workflows are not affected. API keys use only connections that are open to everyone."
			>
				<NativeSelect
					value={access}
					options={accesses.filter(({ value }) => value !== "owner" || owned)}
					onChange={(event) => setAccess(event.target.value as Access)}
				/>
			</Field>
			{access === "members" && <People chosen={members} owner={connection.created_by} onChange={setMembers} />}
			{error && !nameError && !accessError && <ErrorNote error={error} />}
		</Dialog>
	);
}

interface PeopleProps {
	chosen: readonly string[];
	/** Who may always use it. */
	owner: string | null;
	onChange: (ids: string[]) => void;
}

function People({ chosen, owner, onChange }: PeopleProps) {
	const { data, error, refetch } = usePeople();
	if (error) return <ErrorState error={error} onRetry={() => void refetch()} />;
	if (!data) return <SkeletonRows rows={3} />;
	return (
		<fieldset className="flex max-h-60 flex-col gap-2 overflow-y-auto">
			<legend className="mb-1 font-medium">Members</legend>
			{data.map(({ id, name, email }) => (
				<Checkbox
					key={id}
					label={name || email}
					hint={id === owner ? "Created the connection" : name ? email : undefined}
					checked={id === owner || chosen.includes(id)}
					disabled={id === owner}
					onChange={(event) =>
						onChange(event.target.checked ? [...chosen, id] : chosen.filter((other) => other !== id))
					}
				/>
			))}
		</fieldset>
	);
}

/** AccessText says who may use a connection. */
export function AccessText({ connection: { access, members } }: { connection: Connection }) {
	if (access === "members") return <>{members.length === 1 ? "1 chosen member" : `${members.length} chosen members`}</>;
	return <>{accesses.find(({ value }) => value === access)?.label}</>;
}
