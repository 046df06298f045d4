import { type AnyRouter, redirect } from "@tanstack/react-router";
import { toApiError } from "@/api/error";
import { queries } from "@/api/query";
import { sessionQuery } from "@/api/session";

/** inside tells whether an address is one of ours, so that signing in leads nowhere else. */
export function inside(next: string | undefined): next is string {
	return next !== undefined && /^\/(?![/\\])/.test(next) && !/^\/sign-in\b/.test(next);
}

/** requireSession lets people in who are signed in, and keeps the address for the others. */
export async function requireSession({ location }: { location: { href: string } }): Promise<void> {
	try {
		await queries.ensureQueryData(sessionQuery);
	} catch (thrown) {
		if (toApiError(thrown).status !== 401) throw thrown;
		throw redirect({
			to: "/sign-in",
			search: inside(location.href) && location.href !== "/" ? { next: location.href } : {},
		});
	}
}

/** askToSignIn is called when a session has ended while its pages are open. */
export function askToSignIn(router: AnyRouter): void {
	const { pathname, href } = router.state.location;
	if (["/sign-in", "/welcome", "/invitation", "/reset"].includes(pathname)) return;
	queries.removeQueries({ queryKey: sessionQuery.queryKey });
	void router.navigate({ to: "/sign-in", search: { next: href, ended: "1" } });
}
