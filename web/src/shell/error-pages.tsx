import { Link, useRouter } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { toApiError } from "@/api/error";
import { isUnreachable, recovery } from "@/api/recovery";
import Forbidden from "@/shell/forbidden";
import { Button } from "@/ui/button";
import { SearchIcon } from "@/ui/icons";
import { useTitle } from "@/ui/page";
import { EmptyState, ErrorState } from "@/ui/states";

/** NotFound is the page for unknown URLs. */
export function NotFound() {
	useTitle("Not found");
	return (
		<EmptyState
			icon={SearchIcon}
			title="Page not found"
			actions={
				<Button asChild>
					<Link to="/workflows">Go to workflows</Link>
				</Button>
			}
		>
			It may have been deleted, or the link may be incomplete.
		</EmptyState>
	);
}

/** PageError replaces a page that failed to render. It retries automatically once an unreachable server is back. */
export function PageError({ error, reset }: { error: unknown; reset: () => void }) {
	const router = useRouter();
	const { status, code } = toApiError(error);
	const retry = () => {
		// Some browsers do not retry a module that failed to load.
		if (code === "page_unreachable") return location.reload();
		reset();
		void router.invalidate();
	};
	useServerRecovery(isUnreachable(error), retry);
	if (status === 403) return <Forbidden error={error} />;
	if (status === 404) return <NotFound />;
	return <ErrorState error={error} title="This page could not be loaded" onRetry={retry} />;
}

/** useServerRecovery calls `back` once the server is reachable again. */
function useServerRecovery(away: boolean, back: () => void): void {
	const latest = useRef(back);
	useEffect(() => {
		latest.current = back;
	});
	useEffect(() => (away ? recovery.add(() => latest.current()) : undefined), [away]);
}
