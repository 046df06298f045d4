import createClient, { type Middleware } from "openapi-fetch";
import { ApiError, errorOf } from "./error";
import type { components, paths } from "./schema";

export type Schema = components["schemas"];

/** The dashboard's mount of the API: the same routes, authenticated by a cookie instead of a key. */
export const base = "/ui";

const signOutListeners = new Set<() => void>();

/** onSignedOut registers a listener that is called when the server no longer knows the session. */
export function onSignedOut(listener: () => void): () => void {
	signOutListeners.add(listener);
	return () => signOutListeners.delete(listener);
}

export function notifySignedOut(): void {
	for (const listener of signOutListeners) listener();
}

const throwOnError: Middleware = {
	async onResponse({ response }) {
		if (response.ok || response.status === 304) return undefined;
		const body = await response
			.clone()
			.json()
			.catch(() => undefined);
		throw errorOf(response, body);
	},
};

const detectSignOut: Middleware = {
	onResponse({ response }) {
		if (response.status === 401) notifySignedOut();
	},
};

export const api = createClient<paths>({
	baseUrl: base,
	credentials: "same-origin",
	// Looked up on each call so that tests can replace it.
	fetch: (request) => globalThis.fetch(request),
});
// Middleware sees responses in reverse order.
api.use(throwOnError, detectSignOut);

/**
 * direct calls the routes that exist only for the dashboard, such as "/ui/v1/session". A
 * 401 from them does not redirect to the sign-in page, because that page itself calls most
 * of them.
 */
export const direct = createClient<paths>({
	credentials: "same-origin",
	fetch: (request) => globalThis.fetch(request),
});
direct.use(throwOnError);

/**
 * got returns the data of a response: `got(api.GET("/v1/runs/{id}", …))`. Error responses
 * have already been thrown as ApiError.
 */
export async function got<T>(call: Promise<{ data?: T }>): Promise<T> {
	return (await call).data as T;
}

/** gotOrNull is like got, but returns null for something that does not exist. */
export async function gotOrNull<T>(call: Promise<{ data?: T }>): Promise<T | null> {
	try {
		return await got(call);
	} catch (error) {
		if (error instanceof ApiError && error.status === 404) return null;
		throw error;
	}
}

/** gotTagged is like got, but also returns the ETag for a later If-Match. */
export async function gotTagged<T>(
	call: Promise<{ data?: T; response: Response }>,
): Promise<{ data: T; etag: string }> {
	const { data, response } = await call;
	return { data: data as T, etag: response.headers.get("ETag") ?? "" };
}
