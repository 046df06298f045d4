import { api, got, type Schema } from "@/api/client";
import { SecretIcon } from "@/ui/icons";
import type { Column } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { SecretDialog } from "./dialogs";
import { NamedList } from "./list";
import { Name } from "./name";

/** Secrets lists the names of secrets. Values are never shown. */
export function Secrets({ onNew }: { onNew: () => void }) {
	return (
		<NamedList
			noun="secret"
			label="Secrets"
			icon={SecretIcon}
			columns={columns}
			verb="Replace"
			loss="Steps that refer to it will fail. The value cannot be recovered."
			empty="Store the passwords and tokens that steps need. They are encrypted, and masked in run data."
			read={(cursor, signal) => got(api.GET("/v1/secrets", { params: { query: { limit: 50, cursor } }, signal }))}
			remove={(name) => api.DELETE("/v1/secrets/{name}", { params: { path: { name } } })}
			dialog={({ name }, onOpenChange) => <SecretDialog name={name} onOpenChange={onOpenChange} />}
			onNew={onNew}
		/>
	);
}

const columns: Column<Schema["Secret"]>[] = [
	{
		key: "name",
		header: "Name",
		cell: ({ name }) => <Name name={name} root="secrets" />,
		className: "w-full max-w-0 min-w-40",
	},
	{ key: "value", header: "Value", wide: true, cell: () => <span className="text-muted">Encrypted</span> },
	{ key: "updated", header: "Updated", wide: true, cell: (secret) => <RelativeTime at={secret.updated_at} /> },
	{ key: "created", header: "Created", wide: true, cell: (secret) => <RelativeTime at={secret.created_at} /> },
];
