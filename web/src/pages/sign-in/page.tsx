import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got } from "@/api/client";
import { useFilters } from "@/shell/filters";
import { isInternalPath } from "@/shell/require-session";
import { Button } from "@/ui/button";
import { EmailField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";
import { ProviderError } from "./provider-error";
import { useSignIn } from "./use-sign-in";

export default function SignIn() {
	const [{ next, ended, error: errorCode }] = useFilters<"next" | "ended" | "error">();
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const { data: ways } = useQuery({ queryKey: ["welcome"], queryFn: () => got(direct.GET("/ui/v1/welcome")) });
	const { enter, busy, error, whole } = useSignIn(
		() => got(direct.POST("/ui/v1/session", { body: { email, password } })),
		next,
	);
	return (
		<Frame
			title="Sign in"
			lead={ended ? "You were signed out. Sign in to continue where you left off." : "to Stepmill"}
			foot={
				ways?.needed
					? "There are no accounts yet. Create the first one with the link that the server prints when it starts."
					: "Forgot your password? Ask the operator of this server for a reset link."
			}
		>
			{errorCode && <ProviderError code={errorCode} />}
			<Form verb="Sign in" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<EmailField value={email} onChange={setEmail} error={error} autoFocus />
				<PasswordField value={password} onChange={setPassword} error={error} />
			</Form>
			{ways?.oidc && (
				<Button asChild className="mt-3 w-full">
					<a href={`/ui/v1/oidc/start${isInternalPath(next) ? `?next=${encodeURIComponent(next)}` : ""}`}>
						Sign in with your identity provider
					</a>
				</Button>
			)}
		</Frame>
	);
}
