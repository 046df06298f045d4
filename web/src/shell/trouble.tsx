import { Link, useRouter } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import Forbidden from "@/sign-in/forbidden";
import { Button } from "@/ui/button";
import { SearchIcon } from "@/ui/icons";
import { useTitle } from "@/ui/page";
import { EmptyState, ErrorState } from "@/ui/states";

/** Nowhere is the page for an address that has none. */
export function Nowhere() {
	useTitle("Not found");
	return (
		<EmptyState
			icon={SearchIcon}
			title="There is nothing at this address"
			actions={
				<Button asChild>
					<Link to="/workflows">Go to workflows</Link>
				</Button>
			}
		>
			It may have been deleted, or the link is not complete.
		</EmptyState>
	);
}

/** Broken is shown in the place of a page that failed. */
export function Broken({ error, reset }: { error: unknown; reset: () => void }) {
	const router = useRouter();
	const { status } = toApiError(error);
	if (status === 403) return <Forbidden error={error} />;
	if (status === 404) return <Nowhere />;
	return (
		<ErrorState
			error={error}
			title="This page could not be shown"
			onRetry={() => {
				reset();
				void router.invalidate();
			}}
		/>
	);
}
