import { EditorView } from "@codemirror/view";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
	createMemoryHistory,
	createRootRoute,
	createRoute,
	createRouter,
	Outlet,
	RouterProvider,
} from "@tanstack/react-router";
import { act, render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { vi } from "vitest";
import type { Scope } from "@/api/session";
import { readSearch, writeSearch } from "@/shell/filters";
import { Toasts } from "@/ui/toast";
import { TooltipProvider } from "@/ui/tooltip";

// Components are rendered as in the dashboard: inside a router, with a session and a query
// cache. Only the server is mocked.

/** A call as the server sees it. */
export interface Call {
	readonly method: string;
	/** Relative to /ui, as in "/v1/runs". */
	readonly path: string;
	readonly query: URLSearchParams;
	// biome-ignore lint/suspicious/noExplicitAny: tests know what they sent
	readonly body: any;
	readonly text: string;
	readonly headers: Headers;
}

/** The responses of the server, by "METHOD /path": a body, or a function from the call to a body. */
export type Responses = Record<string, unknown>;

export interface Options {
	answers?: Responses;
	scopes?: Scope[];
	/** Further members of the session. */
	session?: object;
	/** The URL of the page. */
	at?: string;
	/** Renders toasts as well. */
	toasts?: boolean;
}

/** The redirect URL of the session. */
export const redirectUrl = "https://flows.example.com/ui/v1/oauth/callback";

/** errorResponse returns an error response as the server sends it. */
export function errorResponse(
	status: number,
	code: string,
	message: string,
	details: { pointer: string; message: string }[] = [],
): Response {
	const error = { code, message, details, request_id: "req_1" };
	return new Response(JSON.stringify({ error }), { status, headers: { "Content-Type": "application/json" } });
}

/** mockServer replaces fetch and returns the recorded calls. A call without a response fails the test. */
function mockServer(answers: Responses): Call[] {
	const calls: Call[] = [];
	vi.stubGlobal("fetch", async (request: Request) => {
		const { pathname, searchParams } = new URL(request.url, "http://localhost");
		const text = await request.clone().text();
		const path = pathname.replace(/^\/ui(?=\/v1)/, "");
		const json = request.headers.get("Content-Type") === "application/json";
		const body = text ? (json ? JSON.parse(text) : text) : undefined;
		const call = { method: request.method, path, query: searchParams, body, text, headers: request.headers };
		const key = `${call.method} ${path}`;
		if (!(key in answers)) throw new Error(`no answer to ${key}`);
		calls.push(call);
		const answer = answers[key];
		const result = typeof answer === "function" ? await answer(call) : answer;
		if (result instanceof Response) return result.clone();
		const headers = { "Content-Type": "application/json", ETag: '"1"' };
		return new Response(result === undefined ? null : JSON.stringify(result), {
			status: result === undefined ? 204 : 200,
			headers,
		});
	});
	return calls;
}

/** writeCode replaces the text of a code editor, which cannot receive key events without layout. */
export async function writeCode(label: string, text: string): Promise<void> {
	const content = await screen.findByRole("textbox", { name: label });
	const view = EditorView.findFromDOM(content);
	if (!view) throw new Error(`${label} is no code editor`);
	act(() => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }));
}

/** renderPage renders a component as a page of the dashboard. */
export async function renderPage(
	ui: ReactNode,
	{ answers = {}, scopes = ["admin"], session = {}, at = "/", toasts = false }: Options = {},
) {
	const calls = mockServer(answers);
	const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
	client.setQueryData(["session"], { scopes, user: { name: "Ada" }, oauth_redirect_url: redirectUrl, ...session });
	const root = createRootRoute({ component: Outlet });
	const page = createRoute({ getParentRoute: () => root, path: "$", component: () => <div>{ui}</div> });
	const router = createRouter({
		routeTree: root.addChildren([page]),
		history: createMemoryHistory({ initialEntries: [at] }),
		parseSearch: readSearch,
		stringifySearch: writeSearch,
	});
	await router.load();
	const drawn = render(
		<QueryClientProvider client={client}>
			<TooltipProvider>
				<RouterProvider router={router as never} />
				{toasts && <Toasts />}
			</TooltipProvider>
		</QueryClientProvider>,
	);
	return { ...drawn, calls, router, client, user: userEvent.setup(), screen };
}
