import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "@/api/session";
import { type Integration, useIntegrations } from "@/shared/connections/data";
import { IconTile, markOf } from "@/shared/mark";
import { Button, IconButton } from "@/ui/button";
import { PieceIcon, PlusIcon, TrashIcon } from "@/ui/icons";
import { Link } from "@/ui/link";
import { PageHeader } from "@/ui/page";
import { EmptyState, ErrorState, SkeletonRows } from "@/ui/states";
import { Card, type Column, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { DeleteIntegration } from "./delete-integration";
import { SettingsFrame } from "./frame";
import { manifestQuery } from "./manifest";

/** Integrations lists the integrations that the workspace has described itself. */
export default function Integrations() {
	const { data, error, refetch } = useIntegrations();
	const write = useMay("write");
	const own = data?.filter((one) => one.own);
	const add = write && (
		<Button kind="primary" asChild>
			<Link plain to="/settings/integrations/new">
				<PlusIcon />
				Add integration
			</Link>
		</Button>
	);
	return (
		<SettingsFrame>
			<PageHeader
				title="Integrations"
				lead="Services that people of this workspace have described. The builder offers them like those that are part of Stepmill."
				actions={add}
			/>
			<Card>
				{error ? (
					<ErrorState error={error} onRetry={() => void refetch()} />
				) : !own ? (
					<SkeletonRows rows={3} />
				) : own.length === 0 ? (
					<EmptyState icon={PieceIcon} title="No integrations of your own yet" actions={add}>
						Describe a service that Stepmill does not know, such as an internal one, and use it in any workflow. For an
						API with an OpenAPI document,{" "}
						<code className="font-mono text-12 text-text">stepmill integrations from-openapi</code> writes the manifest.
					</EmptyState>
				) : (
					<Rows integrations={own} />
				)}
			</Card>
		</SettingsFrame>
	);
}

function Rows({ integrations }: { integrations: Integration[] }) {
	const [deleting, setDeleting] = useState<Integration>();
	const write = useMay("write");
	const actions: Column<Integration> = {
		key: "actions",
		header: <span className="sr-only">Actions</span>,
		align: "right",
		cell: (one) => (
			<span className="row-control">
				<IconButton icon={TrashIcon} label={`Delete ${one.name}`} onClick={() => setDeleting(one)} />
			</span>
		),
	};
	return (
		<>
			<Table
				label="Integrations of the workspace"
				rows={integrations}
				rowKey={({ id }) => id}
				columns={write ? [...columns, actions] : columns}
			/>
			{deleting && <DeleteIntegration {...deleting} onClose={() => setDeleting(undefined)} />}
		</>
	);
}

const columns: Column<Integration>[] = [
	{
		key: "name",
		header: "Name",
		className: "w-full max-w-0 min-w-40",
		cell: ({ id, name }) => (
			<div className="flex min-w-0 items-center gap-3">
				<IconTile icon={markOf(id)} className="bg-sunken text-muted" />
				<div className="min-w-0">
					<Link plain to="/settings/integrations/$id" params={{ id }} className="row-link block truncate font-medium">
						{name}
					</Link>
					<code className="block truncate font-mono text-12 text-muted">{id}</code>
				</div>
			</div>
		),
	},
	{ key: "operations", header: "Operations", wide: true, align: "right", cell: ({ operations }) => operations.length },
	{ key: "triggers", header: "Triggers", wide: true, align: "right", cell: ({ triggers }) => triggers.length },
	{
		key: "updated",
		header: "Updated",
		wide: true,
		className: "whitespace-nowrap",
		cell: ({ id }) => <Updated id={id} />,
	},
];

function Updated({ id }: { id: string }) {
	const stored = useQuery(manifestQuery(id)).data;
	return stored && <RelativeTime at={stored.data.updated_at} />;
}
