import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import { useMay, useSession } from "@/api/session";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy";
import { Field, TextInput } from "@/ui/field";
import { PageHeader } from "@/ui/page";
import { ErrorNote, ErrorState, SkeletonRows } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { toast } from "@/ui/toast";
import { Section, SettingsFrame } from "./frame";
import { planName } from "./plan";

export default function Settings() {
	const { workspace } = useSession();
	const admin = useMay("admin");
	return (
		<SettingsFrame>
			<PageHeader title="Workspace" lead="Workflows, runs, API keys and members belong to a workspace." />
			<div>
				<Section title="Name" lead="Shown to members on every page.">
					<Rename key={workspace.id} admin={admin} />
				</Section>
				<Section title="Details" lead="For support requests and API calls.">
					<dl className="grid grid-cols-[max-content_1fr] items-center gap-x-6 gap-y-2">
						<dt className="text-muted">Workspace ID</dt>
						<dd className="flex min-w-0 items-center gap-1">
							<code className="truncate font-mono text-12">{workspace.id}</code>
							<CopyButton value={workspace.id} label="Copy the workspace ID" />
						</dd>
						<dt className="text-muted">Plan</dt>
						<dd>
							<Badge tone="accent">{planName(workspace.plan)}</Badge>
						</dd>
					</dl>
				</Section>
				{admin && (
					<Section title="Nodes" lead="The server processes of this installation.">
						<Nodes />
					</Section>
				)}
			</div>
		</SettingsFrame>
	);
}

function Rename({ admin }: { admin: boolean }) {
	const { workspace } = useSession();
	const [name, setName] = useState(workspace.name);
	const queries = useQueryClient();
	const rename = useMutation({
		meta: { quiet: true },
		mutationFn: () =>
			got(api.PATCH("/v1/workspaces/{id}", { params: { path: { id: workspace.id } }, body: { name: name.trim() } })),
		onSuccess: async () => {
			await queries.invalidateQueries({ queryKey: ["session"] });
			toast.done("The workspace was renamed.");
		},
	});
	const error = rename.error ? toApiError(rename.error) : undefined;
	const field = error?.field("/name");
	return (
		<form
			className="flex max-w-md flex-col gap-3"
			onSubmit={(event) => {
				event.preventDefault();
				rename.mutate();
			}}
		>
			<Field label="Name" error={field}>
				<TextInput value={name} disabled={!admin} maxLength={200} onChange={(event) => setName(event.target.value)} />
			</Field>
			{error && !field && <ErrorNote error={error} />}
			{admin ? (
				<div>
					<Button type="submit" busy={rename.isPending} disabled={name.trim() === workspace.name}>
						Save
					</Button>
				</div>
			) : (
				<p className="text-12 text-muted">Only owners can change the name.</p>
			)}
		</form>
	);
}

function Nodes() {
	const nodes = useQuery({
		queryKey: ["nodes"],
		queryFn: ({ signal }) => got(api.GET("/v1/nodes", { signal })),
		refetchInterval: 10_000,
	});
	if (nodes.isPending) return <SkeletonRows rows={2} />;
	if (nodes.error) return <ErrorState error={nodes.error} onRetry={() => nodes.refetch()} />;
	return (
		<Card>
			<Table
				label="Nodes"
				rows={nodes.data.data}
				rowKey={(node) => node.id}
				columns={[
					{ key: "name", header: "Name", className: "font-medium", cell: (node) => node.name },
					{ key: "role", header: "Role", wide: true, cell: (node) => <Badge>{node.role}</Badge> },
					{ key: "version", header: "Version", wide: true, cell: (node) => <code>{node.version}</code> },
					{ key: "started", header: "Started", cell: (node) => <RelativeTime at={node.started_at} /> },
					{ key: "runs", header: "Runs", align: "right", cell: (node) => node.runs },
				]}
			/>
		</Card>
	);
}
