import createClient, { type Middleware } from "openapi-fetch";
import { errorOf } from "./error";
import type { components, paths } from "./schema";

export type Schema = components["schemas"];

/** The session's own entrance to the API: the same routes, with a cookie in place of a key. */
export const base = "/ui";

const watchers = new Set<() => void>();

/** onSignedOut is told when the server no longer knows the session. */
export function onSignedOut(tell: () => void): () => void {
	watchers.add(tell);
	return () => watchers.delete(tell);
}

export function tellSignedOut(): void {
	for (const tell of watchers) tell();
}

const refusals: Middleware = {
	async onResponse({ response }) {
		if (response.ok || response.status === 304) return undefined;
		const body = await response
			.clone()
			.json()
			.catch(() => undefined);
		throw errorOf(response, body);
	},
};

const endings: Middleware = {
	onResponse({ response }) {
		if (response.status === 401) tellSignedOut();
	},
};

export const api = createClient<paths>({
	baseUrl: base,
	credentials: "same-origin",
	// Looked up at each call, so that tests can stand in for it.
	fetch: (request) => globalThis.fetch(request),
});
// The last one is the first to see an answer.
api.use(refusals, endings);

/**
 * direct calls the routes that exist for the dashboard alone, such as
 * "/ui/v1/session". A refusal there sends nobody to the sign-in page: most of
 * them are what that page calls.
 */
export const direct = createClient<paths>({
	credentials: "same-origin",
	fetch: (request) => globalThis.fetch(request),
});
direct.use(refusals);

/**
 * got unwraps an answer: `got(api.GET("/v1/runs/{id}", …))`. A refusal has been
 * thrown as ApiError before, so that the data is there.
 */
export async function got<T>(call: Promise<{ data?: T }>): Promise<T> {
	return (await call).data as T;
}

/** gotTagged is got with the ETag, for a later If-Match. */
export async function gotTagged<T>(
	call: Promise<{ data?: T; response: Response }>,
): Promise<{ data: T; etag: string }> {
	const { data, response } = await call;
	return { data: data as T, etag: response.headers.get("ETag") ?? "" };
}
