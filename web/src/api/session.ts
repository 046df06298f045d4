import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { direct, got, type Schema } from "./client";

/** Who is signed in, and what the session may do in its workspace. */
export type Session = Schema["SignedIn"];
export type Role = Schema["Role"];
export type Scope = Session["scopes"][number];

export const sessionQuery = queryOptions({
	queryKey: ["session"],
	queryFn: ({ signal }) => got(direct.GET("/ui/v1/session", { signal })),
	staleTime: 5 * 60_000,
});

/** useSession returns the current session. Pages inside the shell always have one. */
export function useSession(): Session {
	return useSuspenseQuery(sessionQuery).data;
}

/** grants reports whether the scopes include a scope; admin includes all of them. */
export function grants(scopes: readonly Scope[], scope: Scope): boolean {
	return scopes.includes("admin") || scopes.includes(scope);
}

/** useMay reports whether the session has a scope. The dashboard hides what the session may not do. */
export function useMay(scope: Scope): boolean {
	return grants(useSession().scopes, scope);
}
