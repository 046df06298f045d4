import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { ErrorState, SkeletonRows } from "@/ui/states";
import { NameField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { InvalidLink } from "./invalid-link";
import { useToken } from "./token";
import { useSignIn } from "./use-sign-in";

const gone = "It has already been used, was revoked or has expired. Ask the person who invited you for a new one.";

/** Invitation lets an invited person join a workspace. */
export default function Invitation() {
	const token = useToken();
	const { data, error, isPending, refetch } = useQuery({
		queryKey: ["invitation", token],
		queryFn: () => got(direct.POST("/ui/v1/invitations/look", { body: { token } })),
		enabled: token !== "",
	});
	if (token === "") return <InvalidLink>Copy the whole link, including the part after the #.</InvalidLink>;
	if (isPending) {
		return (
			<Frame title="Invitation">
				<SkeletonRows rows={3} />
			</Frame>
		);
	}
	if (error && toApiError(error).code === "link_not_found") return <InvalidLink>{gone}</InvalidLink>;
	if (error) {
		return (
			<Frame title="Invitation">
				<ErrorState error={error} onRetry={refetch} />
			</Frame>
		);
	}
	return <Join invited={data} token={token} />;
}

function Join({ invited, token }: { invited: Schema["Invited"]; token: string }) {
	const known = invited.has_account;
	const [name, setName] = useState("");
	const [password, setPassword] = useState("");
	const { enter, busy, error, whole } = useSignIn(
		() =>
			got(direct.POST("/ui/v1/invitations/accept", { body: known ? { token, password } : { token, name, password } })),
		"/workflows",
	);
	if (error?.code === "link_not_found") return <InvalidLink>{gone}</InvalidLink>;
	return (
		<Frame
			title={`Join ${invited.workspace.name}`}
			lead={`${invited.invited_by ?? "An owner"} invited ${invited.email} to join as ${invited.role}.`}
		>
			<Form
				verb={known ? "Join" : "Create account and join"}
				busy={busy}
				error={whole}
				onSubmit={() => enter(undefined)}
			>
				{/* Tells password managers whose password this is. */}
				<input type="email" name="email" autoComplete="username" value={invited.email} readOnly hidden />
				{!known && <NameField value={name} onChange={setName} error={error} autoFocus />}
				<PasswordField
					label={known ? "Your password" : "Choose a password"}
					value={password}
					onChange={setPassword}
					error={error}
					fresh={!known}
					autoFocus={known}
				/>
			</Form>
		</Frame>
	);
}
