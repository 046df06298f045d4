import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got, type Schema } from "@/api/client";
import { toApiError } from "@/api/error";
import { useFilters } from "@/shell/filters";
import { Button } from "@/ui/button";
import { ErrorNote, ErrorState, SkeletonRows } from "@/ui/states";
import { NameField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { InvalidLink } from "./invalid-link";
import { ProviderError } from "./provider-error";
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

/** Answers are what the invited person enters to join with a password. */
type Answers = { name?: string; password: string };

function Join({ invited, token }: { invited: Schema["Invited"]; token: string }) {
	const [{ error: errorCode }] = useFilters<"error">();
	const { data: ways } = useQuery({ queryKey: ["welcome"], queryFn: () => got(direct.GET("/ui/v1/welcome")) });
	const joining = useSignIn(
		(answers: Answers) => got(direct.POST("/ui/v1/invitations/accept", { body: { token, ...answers } })),
		"/workflows",
	);
	/** A user without a password can only accept with the identity provider. */
	const withPassword = invited.has_password || !invited.has_account;
	const starting = useMutation({
		mutationFn: () => got(direct.POST("/ui/v1/invitations/accept-with-provider", { body: { token } })),
		meta: { quiet: true },
		onSuccess: ({ url }) => location.assign(url),
	});
	const refused = joining.error ?? (starting.error ? toApiError(starting.error) : undefined);
	if (refused?.code === "link_not_found") return <InvalidLink>{gone}</InvalidLink>;
	return (
		<Frame
			title={`Join ${invited.workspace.name}`}
			lead={`${invited.invited_by ?? "An owner"} invited ${invited.email} to join as ${invited.role}.`}
		>
			{errorCode && <ProviderError code={errorCode} />}
			{withPassword && <JoinWithPassword invited={invited} joining={joining} />}
			{!withPassword && ways && !ways.oidc && (
				<p>
					Your account has no password. Ask the operator of this server for a reset link, then open this link again.
				</p>
			)}
			{ways?.oidc && (
				<>
					{starting.error && <ErrorNote error={starting.error} />}
					<Button
						kind={withPassword ? undefined : "primary"}
						className="mt-3 w-full"
						busy={starting.isPending || starting.isSuccess}
						onClick={() => starting.mutate()}
					>
						Join with your identity provider
					</Button>
				</>
			)}
		</Frame>
	);
}

function JoinWithPassword({
	invited,
	joining: { enter, busy, error, whole },
}: {
	invited: Schema["Invited"];
	joining: ReturnType<typeof useSignIn<Answers>>;
}) {
	const known = invited.has_account;
	const [name, setName] = useState("");
	const [password, setPassword] = useState("");
	return (
		<Form
			verb={known ? "Join" : "Create account and join"}
			busy={busy}
			error={whole}
			onSubmit={() => enter(known ? { password } : { name, password })}
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
	);
}
