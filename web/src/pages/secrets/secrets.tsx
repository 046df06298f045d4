import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { useMay } from "@/api/session";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { PlusIcon, SecretIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { SecretDialog } from "./dialogs";
import { Name } from "./name";

type Secret = Schema["Secret"];
type Asked = { what: "replace" | "delete"; name: string };

/** Secrets lists names: no value is ever shown. */
export function Secrets({ onNew }: { onNew: () => void }) {
	const [asked, setAsked] = useState<Asked>();
	const write = useMay("write");
	const client = useQueryClient();
	const pages = usePages<Secret>(["secrets"], (cursor, signal) =>
		got(api.GET("/v1/secrets", { params: { query: { limit: 50, cursor } }, signal })),
	);
	const close = (open: boolean) => !open && setAsked(undefined);
	const remove = async (name: string) => {
		await api.DELETE("/v1/secrets/{name}", { params: { path: { name } } });
		toast.done(`“${name}” was deleted`);
		await client.invalidateQueries({ queryKey: ["secrets"] });
	};
	return (
		<Card>
			<Paged pages={pages} empty={<None write={write} onNew={onNew} />}>
				{(items) => (
					<Table label="Secrets" columns={columns(write, setAsked)} rows={items} rowKey={(secret) => secret.name} />
				)}
			</Paged>
			{asked?.what === "replace" && <SecretDialog name={asked.name} onOpenChange={close} />}
			{asked?.what === "delete" && (
				<ConfirmDialog
					open
					onOpenChange={close}
					title={`Delete “${asked.name}”?`}
					verb="Delete secret"
					danger
					onConfirm={() => remove(asked.name)}
				>
					A step that refers to it fails from then on. The value cannot be brought back.
				</ConfirmDialog>
			)}
		</Card>
	);
}

function columns(write: boolean, onAsk: (asked: Asked) => void): Column<Secret>[] {
	const shown: Column<Secret>[] = [
		{
			key: "name",
			header: "Name",
			cell: ({ name }) => <Name name={name} root="secrets" />,
			className: "w-full max-w-0 min-w-40",
		},
		{ key: "value", header: "Value", wide: true, cell: () => <span className="text-muted">Sealed</span> },
		{ key: "updated", header: "Changed", wide: true, cell: (secret) => <RelativeTime at={secret.updated_at} /> },
		{ key: "created", header: "Created", wide: true, cell: (secret) => <RelativeTime at={secret.created_at} /> },
	];
	if (!write) return shown;
	return [
		...shown,
		{
			key: "actions",
			header: <span className="sr-only">Actions</span>,
			align: "right",
			cell: ({ name }) => (
				<span className="flex justify-end gap-1">
					<Button small kind="quiet" aria-label={`Replace ${name}`} onClick={() => onAsk({ what: "replace", name })}>
						Replace
					</Button>
					<Button small kind="quiet" aria-label={`Delete ${name}`} onClick={() => onAsk({ what: "delete", name })}>
						Delete
					</Button>
				</span>
			),
		},
	];
}

function None({ write, onNew }: { write: boolean; onNew: () => void }) {
	return (
		<EmptyState
			icon={SecretIcon}
			title="No secrets yet"
			actions={
				write && (
					<Button kind="primary" icon={PlusIcon} onClick={onNew}>
						New secret
					</Button>
				)
			}
		>
			Passwords and tokens that steps need. They are sealed, and masked in what runs record.
		</EmptyState>
	);
}
