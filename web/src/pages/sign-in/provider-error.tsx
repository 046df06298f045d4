const explanations: Record<string, string> = {
	oidc_denied: "Your identity provider denied access.",
	oidc_failed: "Signing in with your identity provider failed. Try again in a moment.",
	oidc_unverified: "Your identity provider has not verified your email address.",
	oidc_unknown_user: "There is no account with your email address. Ask a workspace owner to invite you.",
	oidc_other_address:
		"You signed in at your identity provider with another email address than the one that was invited.",
	oidc_already_member: "You are already a member of this workspace. Sign in to open it.",
};

/** ProviderError explains why signing in with the identity provider failed. */
export function ProviderError({ code }: { code: string }) {
	return (
		<p role="alert" className="mb-4 rounded-6 border-l-4 border-failed bg-failed-soft px-3 py-2 text-failed">
			{explanations[code] ?? explanations.oidc_failed}
		</p>
	);
}
