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

/** Invitations are those that nobody has accepted yet. */
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
			<h2 className="text-14 font-semibold">Open invitations</h2>
			<Card>
				<Paged pages={pages} rows={2} empty={<EmptyState title="No invitation is open." />}>
					{(invitations) => (
						<Table
							label="Open invitations"
							rows={invitations}
							rowKey={(invitation) => invitation.id}
							columns={[
								{
									key: "email",
									header: "E-mail address",
									className: "max-w-0 w-1/2",
									cell: (invitation) => <div className="truncate font-medium">{invitation.email}</div>,
								},
								{ key: "role", header: "Role", cell: (invitation) => <Badge>{roleName(invitation.role)}</Badge> },
								{ key: "expires", header: "Ends", wide: true, cell: (one) => <RelativeTime at={one.expires_at} /> },
								{
									key: "revoke",
									header: <span className="sr-only">Take back</span>,
									align: "right",
									cell: (invitation) => (
										<IconButton
											icon={TrashIcon}
											label={`Take back the invitation of ${invitation.email}`}
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
					title="Take the invitation back?"
					verb="Take back"
					danger
					onConfirm={() => revoke(revoking)}
				>
					The link that was sent to {revoking.email} stops working.
				</ConfirmDialog>
			)}
		</section>
	);
}
