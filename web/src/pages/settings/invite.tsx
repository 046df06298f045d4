import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, got } from "@/api/client";
import { toApiError } from "@/api/error";
import type { Role } from "@/api/session";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Field, NativeSelect, TextInput } from "@/ui/field";
import { OnceDialog } from "@/ui/once-dialog";
import { ErrorNote } from "@/ui/states";
import { roles } from "./roles";

/** InviteDialog creates an invitation and shows its link once. */
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
			<OnceDialog
				title="Send this link"
				description={`It lets ${invite.data.email} join as ${roles.find(({ value }) => value === invite.data.role)?.label ?? invite.data.role} and expires in 7 days.`}
				label="Invitation link"
				value={invite.data.link}
				done="I have copied it"
				onDone={onClose}
			/>
		);
	}
	const error = invite.error ? toApiError(invite.error) : undefined;
	const field = error?.field("/email");
	return (
		<Dialog
			open
			onOpenChange={(open) => !open && onClose()}
			title="Invite a member"
			description="This creates a link that you send to them."
			onSubmit={() => invite.mutate()}
			actions={
				<>
					<Button onClick={onClose}>Cancel</Button>
					<Button type="submit" kind="primary" busy={invite.isPending}>
						Create link
					</Button>
				</>
			}
		>
			<div className="flex flex-col gap-4">
				<Field label="Email address" required error={field}>
					<TextInput type="email" autoComplete="off" value={email} onChange={(event) => setEmail(event.target.value)} />
				</Field>
				<Field label="Role" hint={roles.find(({ value }) => value === role)?.description} error={error?.field("/role")}>
					<NativeSelect value={role} onChange={(event) => setRole(event.target.value as Role)} options={roles} />
				</Field>
				{error && !field && <ErrorNote error={error} />}
			</div>
		</Dialog>
	);
}
