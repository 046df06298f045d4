import { type AnyRouter, redirect } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { queries } from "@/api/query";
import { sessionQuery } from "@/api/session";

/** isInternalPath reports whether a path belongs to the dashboard, so that signing in cannot redirect elsewhere. */
export function isInternalPath(next: string | undefined): next is string {
	return next !== undefined && /^\/(?![/\\])/.test(next) && !/^\/sign-in\b/.test(next);
}

/** requireSession redirects to the sign-in page unless the user is signed in, and remembers the current URL. */
export async function requireSession({ location }: { location: { href: string } }): Promise<void> {
	try {
		await queries.ensureQueryData(sessionQuery);
	} catch (thrown) {
		if (toApiError(thrown).status !== 401) throw thrown;
		throw redirect({
			to: "/sign-in",
			search: isInternalPath(location.href) && location.href !== "/" ? { next: location.href } : {},
		});
	}
}

/** redirectToSignIn is called when a session ends while its pages are open. */
export function redirectToSignIn(router: AnyRouter): void {
	const { pathname, href } = router.state.location;
	if (["/sign-in", "/welcome", "/invitation", "/reset"].includes(pathname)) return;
	queries.removeQueries({ queryKey: sessionQuery.queryKey });
	void router.navigate({ to: "/sign-in", search: { next: href, ended: "1" } });
}
