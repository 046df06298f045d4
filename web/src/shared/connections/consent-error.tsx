import { toApiError } from "@/api/error";
import { useMay, useSession } from "@/api/session";
import { Link } from "@/ui/link";
import { ErrorNote } from "@/ui/states";
import { RedirectUrl } from "./redirect-url";

interface ConsentErrorProps {
	error: unknown;
	serviceName: string;
}

/** ConsentError shows why a consent did not begin or was not completed, and what to do about it. */
export function ConsentError({ error: thrown, serviceName }: ConsentErrorProps) {
	const error = toApiError(thrown);
	const { oauth_redirect_url: redirect } = useSession();
	const owner = useMay("admin");
	return (
		<>
			<ErrorNote error={error} />
			{error.code === "wrong_host" && (
				<p>
					<a
						href={new URL(location.pathname + location.search, redirect).href}
						target="_blank"
						rel="noreferrer"
						className="text-accent underline"
					>
						Open {new URL(redirect).origin}
					</a>
				</p>
			)}
			{error.code === "oauth_app_missing" && owner && (
				<p>
					<Link to="/settings/oauth-apps">Add an OAuth app in the settings</Link>
				</p>
			)}
			{error.code === "consent_refused" && (
				<>
					<p>
						Try again and allow access. Did {serviceName} reject the app instead? Then check its client ID, its secret
						and its redirect URL.
					</p>
					<RedirectUrl serviceName={serviceName} />
				</>
			)}
		</>
	);
}
