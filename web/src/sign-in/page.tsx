import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { direct, got } from "@/api/client";
import { useFilters } from "@/shell/filters";
import { inside } from "@/shell/gate";
import { Button } from "@/ui/button";
import { useEnter } from "./enter";
import { EmailField, PasswordField } from "./fields";
import { Form } from "./form";
import { Frame } from "./frame";

/** Why signing in with the identity provider did not work. */
const refusals: Record<string, string> = {
	oidc_denied: "Your identity provider did not let you in.",
	oidc_failed: "Signing in with your identity provider did not work. Try again in a moment.",
	oidc_unverified: "Your identity provider has not verified your e-mail address.",
	oidc_unknown_user: "Nobody here has your e-mail address. Ask an owner of the workspace to invite you.",
};

export default function SignIn() {
	const [{ next, ended, error: refused }] = useFilters<"next" | "ended" | "error">();
	const [email, setEmail] = useState("");
	const [password, setPassword] = useState("");
	const { data: ways } = useQuery({ queryKey: ["welcome"], queryFn: () => got(direct.GET("/ui/v1/welcome")) });
	const { enter, busy, error, whole } = useEnter(
		() => got(direct.POST("/ui/v1/session", { body: { email, password } })),
		next,
	);
	return (
		<Frame
			title="Sign in"
			lead={ended ? "You were signed out. Sign in to go on where you were." : "to Stepmill"}
			foot={
				ways?.needed
					? "Nobody can sign in here yet. The first account is made with the link that the server prints when it starts."
					: "Lost your password? Whoever runs this server can make a link for a new one."
			}
		>
			{refused && (
				<p role="alert" className="mb-4 rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2 text-failed">
					{refusals[refused] ?? refusals.oidc_failed}
				</p>
			)}
			<Form verb="Sign in" busy={busy} error={whole} onSubmit={() => enter(undefined)}>
				<EmailField value={email} onChange={setEmail} error={error} autoFocus />
				<PasswordField value={password} onChange={setPassword} error={error} />
			</Form>
			{ways?.oidc && (
				<Button asChild className="mt-3 w-full">
					<a href={`/ui/v1/oidc/start${inside(next) ? `?next=${encodeURIComponent(next)}` : ""}`}>
						Sign in with your identity provider
					</a>
				</Button>
			)}
		</Frame>
	);
}
