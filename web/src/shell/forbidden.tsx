import { Link } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { Button } from "@/ui/button";
import { SecretIcon } from "@/ui/icons";
import { useTitle } from "@/ui/page";
import { sentence } from "@/ui/sentence";
import { EmptyState } from "@/ui/states";

/** Forbidden explains that the user's role is not sufficient, and who can change it. */
export default function Forbidden({ error }: { error?: unknown }) {
	useTitle("Not allowed");
	const { message, requestId } = error === undefined ? { message: "", requestId: "" } : toApiError(error);
	return (
		<EmptyState
			icon={SecretIcon}
			title="Your role does not allow this"
			actions={
				<Button asChild>
					<Link to="/workflows">Go to workflows</Link>
				</Button>
			}
		>
			A workspace owner can give you another role.
			{message && <span className="mt-2 block text-12">{sentence(message)}</span>}
			{requestId && <code className="block font-mono text-12">{requestId}</code>}
		</EmptyState>
	);
}
