import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { type Role, useSession } from "@/api/session";
import { useFilters } from "@/shell/filters";
import { Badge } from "@/ui/badge";
import { Button, IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { NativeSelect } from "@/ui/field";
import { MembersIcon, PlusIcon, TrashIcon } from "@/ui/icons";
import { PageHeader } from "@/ui/page";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { SettingsFrame } from "./frame";
import { Invitations } from "./invitations";
import { InviteDialog } from "./invite";
import { roles } from "./roles";

type Member = Schema["Member"];

export default function Members() {
	const [filters, setFilters] = useFilters<"new">();
	const pages = usePages(["members"], (cursor, signal) =>
		got(api.GET("/v1/members", { params: { query: { cursor } }, signal })),
	);
	return (
		<SettingsFrame>
			<PageHeader
				title="Members"
				lead="People with access to this workspace, and their roles."
				actions={
					<Button kind="primary" icon={PlusIcon} onClick={() => setFilters({ new: "1" })}>
						Invite
					</Button>
				}
			/>
			<Card>
				<Paged pages={pages} empty={<EmptyState icon={MembersIcon} title="No members" />}>
					{(members) => <Rows members={members} />}
				</Paged>
			</Card>
			<Invitations />
			{filters.new && <InviteDialog onClose={() => setFilters({ new: undefined }, { replace: true })} />}
		</SettingsFrame>
	);
}

function Rows({ members }: { members: Member[] }) {
	const { user } = useSession();
	const [removing, setRemoving] = useState<Member>();
	const queries = useQueryClient();
	const remove = async (member: Member) => {
		await got(api.DELETE("/v1/members/{id}", { params: { path: { id: member.id } } }));
		await queries.invalidateQueries({ queryKey: ["members"] });
	};
	return (
		<>
			<Table
				label="Members"
				rows={members}
				rowKey={(member) => member.id}
				columns={[
					{
						key: "name",
						header: "Name",
						className: "max-w-0 w-1/2",
						cell: (member) => (
							<div className="min-w-0">
								<div className="flex items-center gap-2">
									<span className="truncate font-medium">{member.name || member.email}</span>
									{member.id === user.id && <Badge>You</Badge>}
								</div>
								<div className="truncate text-12 text-muted">{member.email}</div>
							</div>
						),
					},
					{ key: "role", header: "Role", cell: (member) => <RoleOf member={member} /> },
					{ key: "seen", header: "Last seen", wide: true, cell: (member) => <RelativeTime at={member.last_seen_at} /> },
					{ key: "joined", header: "Joined", wide: true, cell: (member) => <RelativeTime at={member.created_at} /> },
					{
						key: "remove",
						header: <span className="sr-only">Remove</span>,
						align: "right",
						cell: (member) => (
							<IconButton
								icon={TrashIcon}
								label={`Remove ${member.name || member.email}`}
								onClick={() => setRemoving(member)}
							/>
						),
					},
				]}
			/>
			{removing && (
				<ConfirmDialog
					open
					onOpenChange={(open) => !open && setRemoving(undefined)}
					title={removing.id === user.id ? "Leave the workspace?" : `Remove ${removing.name || removing.email}?`}
					verb={removing.id === user.id ? "Leave" : "Remove"}
					danger
					onConfirm={() => remove(removing)}
				>
					{removing.id === user.id
						? "You lose access to this workspace immediately."
						: "They lose access to this workspace immediately. Everything they have built stays."}
				</ConfirmDialog>
			)}
		</>
	);
}

function RoleOf({ member }: { member: Member }) {
	const queries = useQueryClient();
	const change = useMutation({
		mutationFn: (role: Role) =>
			got(api.PATCH("/v1/members/{id}", { params: { path: { id: member.id } }, body: { role } })),
		onSettled: () => queries.invalidateQueries({ queryKey: ["members"] }),
	});
	return (
		<NativeSelect
			aria-label={`Role of ${member.name || member.email}`}
			className="w-28"
			value={change.isPending ? change.variables : member.role}
			disabled={change.isPending}
			onChange={(event) => change.mutate(event.target.value as Role)}
			options={roles}
		/>
	);
}
