import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import type { Role } from "@/api/session";
import { Button } from "@/ui/button";
import { SecretOnce } from "@/ui/copy";
import { Dialog } from "@/ui/dialog";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { ErrorNote } from "@/ui/states";
import { roles } from "./roles";

/** InviteDialog makes an invitation and shows its link, once. */
export function InviteDialog({ onClose }: { onClose: () => void }) {
	const [email, setEmail] = useState("");
	const [role, setRole] = useState<Role>("editor");
	const queries = useQueryClient();
	const invite = useMutation({
		meta: { quiet: true },
		mutationFn: () => got(api.POST("/v1/invitations", { body: { email: email.trim(), role } })),
		onSuccess: () => queries.invalidateQueries({ queryKey: ["invitations"] }),
	});
	if (invite.data) {
		return (
			<Dialog
				open
				guarded
				onOpenChange={(open) => !open && onClose()}
				title="Send this link"
				description={`It lets ${invite.data.email} join as ${roles.find(({ value }) => value === invite.data.role)?.label ?? invite.data.role}, for 7 days. It is not shown again.`}
				actions={
					<Button kind="primary" onClick={onClose}>
						Done
					</Button>
				}
			>
				<SecretOnce label="Invitation link" value={invite.data.link} />
			</Dialog>
		);
	}
	const refused = invite.error ? toApiError(invite.error) : undefined;
	const field = refused?.field("/email");
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title="Invite somebody"
			description="You get a link to send to them."
			onSubmit={() => invite.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={invite.isPending}>
						Make the link
					</Button>
				</>
			}
		>
			<div className="flex flex-col gap-4">
				<Field label="E-mail address" required error={field}>
					<TextInput type="email" autoComplete="off" value={email} onChange={(event) => setEmail(event.target.value)} />
				</Field>
				<Field label="Role" hint={roles.find(({ value }) => value === role)?.means} error={refused?.field("/role")}>
					<NativeSelect value={role} onChange={(event) => setRole(event.target.value as Role)} options={roles} />
				</Field>
				{refused && !field && <ErrorNote error={refused} />}
			</div>
		</Dialog>
	);
}
