import { queryOptions, useSuspenseQuery } from "@tanstack/react-query";
import { errorOf } from "./error";

export type Role = "owner" | "editor" | "operator" | "viewer";
export type Scope = "read" | "write" | "execute" | "admin";

/** Who is signed in, and what the session may do in its workspace. */
export interface Session {
	user: { id: string; email: string; name: string; has_password: boolean; created_at: string };
	role: Role;
	scopes: Scope[];
	workspace: { id: string; name: string; plan: string };
	workspaces: { id: string; name: string; plan: string; role: Role }[];
	operator: boolean;
	session: { id: string; created_at: string; expires_at: string };
	version: string;
}

/**
 * enter calls the routes of people that have no session yet, and those about the
 * session itself. Unlike `api` it sends nobody to the sign-in page.
 */
export async function enter<T>(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
	const response = await fetch(path, {
		method,
		credentials: "same-origin",
		headers: body === undefined ? {} : { "Content-Type": "application/json" },
		body: body === undefined ? undefined : JSON.stringify(body),
	});
	const text = await response.text();
	let answer: unknown;
	try {
		answer = text ? JSON.parse(text) : undefined;
	} catch {
		// A proxy in between may answer with a page of its own.
	}
	if (!response.ok) throw errorOf(response, answer);
	return answer as T;
}

export const sessionQuery = queryOptions({
	queryKey: ["session"],
	queryFn: () => enter<Session>("GET", "/ui/v1/session"),
	staleTime: 5 * 60_000,
});

/** useSession is who is signed in. Pages inside the shell always have one. */
export function useSession(): Session {
	return useSuspenseQuery(sessionQuery).data;
}

/** grants tells whether scopes include another: admin includes all. */
export function grants(scopes: readonly Scope[], scope: Scope): boolean {
	return scopes.includes("admin") || scopes.includes(scope);
}

/** useMay tells whether the session's role allows something: what it does not allow is not offered. */
export function useMay(scope: Scope): boolean {
	return grants(useSession().scopes, scope);
}
