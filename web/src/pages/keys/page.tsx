import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { KeyIcon, PlusIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime, useNow } from "@/ui/time";
import { toast } from "@/ui/toast";
import { CreateDialog } from "./create";

type Key = Schema["ApiKey"];

export default function Keys() {
	const [filters, setFilters] = useFilters<"new">();
	const [revoked, setRevoked] = useState<Key>();
	const client = useQueryClient();
	const pages = usePages<Key>(["keys"], (cursor, signal) =>
		got(api.GET("/v1/api-keys", { params: { query: { limit: 50, cursor } }, signal })),
	);
	const create = () => setFilters({ new: "1" });
	useShortcut("N", "New API key", create, "API keys");
	const revoke = async (key: Key) => {
		await api.DELETE("/v1/api-keys/{id}", { params: { path: { id: key.id } } });
		toast.done(`API key “${key.name}” was revoked`);
		await client.invalidateQueries({ queryKey: ["keys"] });
	};
	return (
		<Page>
			<PageHeader
				title="API keys"
				lead="Keys that programs use to call the API of this workspace."
				actions={
					<Button kind="primary" icon={PlusIcon} onClick={create}>
						New API key
					</Button>
				}
			/>
			<Card>
				<Paged pages={pages} empty={<NoKeys onNew={create} />}>
					{(items) => <Table label="API keys" columns={columns(setRevoked)} rows={items} rowKey={(key) => key.id} />}
				</Paged>
			</Card>
			{filters.new && (
				<CreateDialog onOpenChange={(open) => !open && setFilters({ new: undefined }, { replace: true })} />
			)}
			{revoked && (
				<ConfirmDialog
					open
					onOpenChange={(open) => !open && setRevoked(undefined)}
					title={`Revoke “${revoked.name}”?`}
					verb="Revoke key"
					danger
					onConfirm={() => revoke(revoked)}
				>
					Requests that use the key starting with <code className="font-mono text-12">{revoked.prefix}</code> are
					rejected within seconds. This cannot be undone.
				</ConfirmDialog>
			)}
		</Page>
	);
}

function columns(onRevoke: (key: Key) => void): Column<Key>[] {
	return [
		{ key: "name", header: "Name", cell: (key) => <Name of={key} />, className: "w-full max-w-0 min-w-44" },
		{ key: "scopes", header: "Scopes", cell: (key) => <Scopes of={key} />, wide: true },
		{ key: "used", header: "Last used", cell: (key) => <RelativeTime at={key.last_used_at} />, wide: true },
		{ key: "created", header: "Created", cell: (key) => <RelativeTime at={key.created_at} />, wide: true },
		{ key: "expires", header: "Expires", cell: (key) => <Expires at={key.expires_at} />, wide: true },
		{
			key: "revoke",
			header: <span className="sr-only">Actions</span>,
			cell: (key) => (
				<Button small kind="quiet" onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
					Revoke
				</Button>
			),
			align: "right",
		},
	];
}

function Name({ of: key }: { of: Key }) {
	return (
		<div className="flex min-w-0 flex-col gap-1">
			<span className="truncate font-medium" title={key.name}>
				{key.name}
			</span>
			<code className="truncate font-mono text-12 text-muted">{key.prefix}…</code>
			<div className="flex flex-col gap-1 sm:hidden">
				<Scopes of={key} />
				<span className="text-12 text-muted">
					Used <RelativeTime at={key.last_used_at} />, expires <RelativeTime at={key.expires_at} />
				</span>
			</div>
		</div>
	);
}

function Scopes({ of: key }: { of: Key }) {
	return (
		<span className="flex flex-wrap gap-1 sm:flex-nowrap">
			{key.scopes.map((scope) => (
				<Badge key={scope} mono tone={scope === "admin" ? "accent" : "neutral"}>
					{scope}
				</Badge>
			))}
		</span>
	);
}

function Expires({ at }: { at: string | null }) {
	const now = useNow(60_000);
	const over = at !== null && Date.parse(at) <= now;
	return over ? <Badge tone="bad">Expired</Badge> : <RelativeTime at={at} />;
}

function NoKeys({ onNew }: { onNew: () => void }) {
	return (
		<EmptyState
			icon={KeyIcon}
			title="No API keys yet"
			actions={
				<Button kind="primary" icon={PlusIcon} onClick={onNew}>
					New API key
				</Button>
			}
		>
			An API key lets a program do what you do here: start runs, read results and change workflows.
		</EmptyState>
	);
}
