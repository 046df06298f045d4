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
import { type Scope, useMay } from "./api/session";
import { readSearch, type Search, writeSearch } from "./shell/filters";
import { requireSession } from "./shell/gate";
import { Layout } from "./shell/layout";
import { Broken, Nowhere } from "./shell/trouble";
import Forbidden from "./sign-in/forbidden";

type Load = () => Promise<{ default: () => ReactNode }>;

const root = createRootRoute({
	component: Outlet,
	notFoundComponent: Nowhere,
	errorComponent: Broken,
	validateSearch: (search: Record<string, unknown>) => search as Search,
});

const shell = createRoute({
	getParentRoute: () => root,
	id: "shell",
	component: Layout,
	beforeLoad: requireSession,
	errorComponent: Broken,
});

/** guarded draws a page for those whose role has the scope, and a word about it for the others. */
function guarded(load: Load, scope: Scope): RouteComponent {
	const Content: RouteComponent = lazyRouteComponent(load);
	if (scope === "read") return Content;
	// biome-ignore lint/correctness/noComponentHookFactories: each page is made once, with the routes
	const Guarded = () => (useMay(scope) ? <Content /> : <Forbidden />);
	return Object.assign(Guarded, { preload: Content.preload });
}

/** page is a page inside the shell, in a chunk of its own, for those whose role has the scope. */
const page = <P extends string>(path: P, load: Load, scope: Scope = "read") =>
	createRoute({
		getParentRoute: () => shell,
		path,
		component: guarded(load, scope),
		errorComponent: Broken,
		notFoundComponent: Nowhere,
	});

/** outside is a page for people who are not signed in. */
const outside = <P extends string>(path: P, load: Load) =>
	createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load) });

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
		page("/first", () => import("./sign-in/first")),
		page("/workflows", () => import("./pages/workflows/page")),
		page("/workflows/$id", () => import("./builder/page")),
		page("/runs", () => import("./pages/runs/page")),
		page("/runs/$id", () => import("./run/page")),
		page("/approvals", () => import("./pages/approvals/page")),
		page("/templates", () => import("./pages/templates/page")),
		page("/templates/$name", () => import("./pages/templates/one")),
		page("/keys", () => import("./pages/keys/page"), "admin"),
		page("/webhooks", () => import("./pages/webhooks/page")),
		page("/webhooks/$id", () => import("./pages/webhooks/one")),
		page("/webhooks/$id/deliveries/$delivery", () => import("./pages/webhooks/delivery")),
		page("/secrets", () => import("./pages/secrets/page")),
		page("/settings", () => import("./pages/settings/page")),
		page("/settings/members", () => import("./pages/settings/members"), "admin"),
		page("/settings/usage", () => import("./pages/settings/usage")),
		page("/settings/audit", () => import("./pages/settings/audit"), "admin"),
		page("/settings/account", () => import("./pages/settings/account")),
		page("/reference", () => import("./pages/reference/page")),
	]),
	outside("/sign-in", () => import("./sign-in/page")),
	outside("/welcome", () => import("./sign-in/welcome")),
	outside("/reset", () => import("./sign-in/reset")),
	outside("/invitation", () => import("./sign-in/invitation")),
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
