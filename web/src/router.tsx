import {
	createRootRoute,
	createRoute,
	createRouter,
	lazyRouteComponent,
	Outlet,
	type RouteComponent,
	redirect,
} from "@tanstack/react-router";
import type { ReactNode } from "react";
import { loadChunk } from "./api/recovery";
import { type Scope, useMay } from "./api/session";
import { NotFound, PageError } from "./shell/error-pages";
import { readSearch, type Search, writeSearch } from "./shell/filters";
import Forbidden from "./shell/forbidden";
import { Layout } from "./shell/layout";
import { requireSession } from "./shell/require-session";

type Load = () => Promise<{ default: () => ReactNode }>;

const root = createRootRoute({
	component: Outlet,
	notFoundComponent: NotFound,
	errorComponent: PageError,
	validateSearch: (search: Record<string, unknown>) => search as Search,
});

const shell = createRoute({
	getParentRoute: () => root,
	id: "shell",
	component: Layout,
	beforeLoad: requireSession,
	errorComponent: PageError,
});

/** guarded renders a page if the session has the scope, and an explanation otherwise. */
function guarded(load: Load, scope: Scope): RouteComponent {
	const Content: RouteComponent = lazyRouteComponent(() => loadChunk(load));
	if (scope === "read") return Content;
	// biome-ignore lint/correctness/noComponentHookFactories: each page is created once, with the routes
	const Guarded = () => (useMay(scope) ? <Content /> : <Forbidden />);
	return Object.assign(Guarded, { preload: Content.preload });
}

/** page is a route inside the shell, in a chunk of its own, that requires a scope. */
const page = <P extends string>(path: P, load: Load, scope: Scope = "read") =>
	createRoute({
		getParentRoute: () => shell,
		path,
		component: guarded(load, scope),
		errorComponent: PageError,
		notFoundComponent: NotFound,
	});

/** outside is a route for users who are not signed in. */
const outside = <P extends string>(path: P, load: Load) =>
	createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(() => loadChunk(load)) });

const moved = <P extends string>(path: P, to: string) =>
	createRoute({
		getParentRoute: () => shell,
		path,
		beforeLoad: () => {
			throw redirect({ to, replace: true });
		},
	});

const tree = root.addChildren([
	shell.addChildren([
		moved("/", "/workflows"),
		page("/first", () => import("./pages/sign-in/first-workflow")),
		page("/workflows", () => import("./pages/workflows/page")),
		page("/workflows/$id", () => import("./pages/builder/page")),
		page("/runs", () => import("./pages/runs/page")),
		page("/runs/$id", () => import("./pages/run/page")),
		page("/approvals", () => import("./pages/approvals/page")),
		page("/templates", () => import("./pages/templates/page")),
		page("/templates/$name", () => import("./pages/templates/template-page")),
		page("/tables", () => import("./pages/tables/page")),
		page("/tables/$id", () => import("./pages/tables/table-page")),
		page("/files", () => import("./pages/files/page")),
		page("/keys", () => import("./pages/keys/page"), "admin"),
		page("/webhooks", () => import("./pages/webhooks/page")),
		page("/webhooks/$id", () => import("./pages/webhooks/webhook-page")),
		page("/webhooks/$id/deliveries/$delivery", () => import("./pages/webhooks/delivery")),
		page("/connections", () => import("./pages/connections/page")),
		page("/connections/$id", () => import("./pages/connections/connection-page")),
		page("/secrets", () => import("./pages/secrets/page")),
		page("/settings", () => import("./pages/settings/page")),
		page("/settings/members", () => import("./pages/settings/members"), "admin"),
		page("/settings/oauth-apps", () => import("./pages/settings/oauth-apps"), "admin"),
		page("/settings/integrations", () => import("./pages/settings/integrations")),
		page("/settings/integrations/new", () => import("./pages/settings/integration-new"), "write"),
		page("/settings/integrations/$id", () => import("./pages/settings/integration-page")),
		page("/settings/usage", () => import("./pages/settings/usage")),
		page("/settings/audit", () => import("./pages/settings/audit"), "admin"),
		page("/settings/account", () => import("./pages/settings/account")),
		page("/reference", () => import("./pages/reference/page")),
	]),
	outside("/sign-in", () => import("./pages/sign-in/page")),
	outside("/welcome", () => import("./pages/sign-in/welcome")),
	outside("/connections/done", () => import("./pages/connections/done")),
	outside("/reset", () => import("./pages/sign-in/reset")),
	outside("/invitation", () => import("./pages/sign-in/invitation")),
]);

export const router = createRouter({
	routeTree: tree,
	parseSearch: readSearch,
	stringifySearch: writeSearch,
	defaultPreload: "intent",
	defaultPendingMs: 300,
});

declare module "@tanstack/react-router" {
	interface Register {
		router: typeof router;
	}
}
