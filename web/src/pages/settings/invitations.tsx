import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { usePages } from "@/api/query";
import { Badge } from "@/ui/badge";
import { IconButton } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import { TrashIcon } from "@/ui/icons";
import { Paged } from "@/ui/paging";
import { EmptyState } from "@/ui/states";
import { Card, Table } from "@/ui/table";
import { RelativeTime } from "@/ui/time";
import { roleName } from "./roles";

type Invitation = Schema["Invitation"];

/** Invitations lists the pending invitations. */
export function Invitations() {
	const [revoking, setRevoking] = useState<Invitation>();
	const queries = useQueryClient();
	const pages = usePages(["invitations"], (cursor, signal) =>
		got(api.GET("/v1/invitations", { params: { query: { cursor } }, signal })),
	);
	const revoke = async (invitation: Invitation) => {
		await got(api.DELETE("/v1/invitations/{id}", { params: { path: { id: invitation.id } } }));
		await queries.invalidateQueries({ queryKey: ["invitations"] });
	};
	return (
		<section className="flex flex-col gap-3">
			<h2 className="text-14 font-semibold">Pending invitations</h2>
			<Card>
				<Paged pages={pages} rows={2} empty={<EmptyState title="No pending invitations" />}>
					{(invitations) => (
						<Table
							label="Pending invitations"
							rows={invitations}
							rowKey={(invitation) => invitation.id}
							columns={[
								{
									key: "email",
									header: "Email address",
									className: "max-w-0 w-1/2",
									cell: (invitation) => <div className="truncate font-medium">{invitation.email}</div>,
								},
								{ key: "role", header: "Role", cell: (invitation) => <Badge>{roleName(invitation.role)}</Badge> },
								{ key: "expires", header: "Expires", wide: true, cell: (one) => <RelativeTime at={one.expires_at} /> },
								{
									key: "revoke",
									header: <span className="sr-only">Revoke</span>,
									align: "right",
									cell: (invitation) => (
										<IconButton
											icon={TrashIcon}
											label={`Revoke the invitation for ${invitation.email}`}
											onClick={() => setRevoking(invitation)}
										/>
									),
								},
							]}
						/>
					)}
				</Paged>
			</Card>
			{revoking && (
				<ConfirmDialog
					open
					onOpenChange={(open) => !open && setRevoking(undefined)}
					title="Revoke this invitation?"
					verb="Revoke invitation"
					danger
					onConfirm={() => revoke(revoking)}
				>
					The link sent to {revoking.email} stops working.
				</ConfirmDialog>
			)}
		</section>
	);
}
