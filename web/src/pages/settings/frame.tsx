import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { type Scope, useMay } from "@/api/session";
import { ChartIcon, type Icon, LogIcon, MembersIcon, PieceIcon, PlugIcon, SettingsIcon, UserIcon } from "@/ui/icons";
import { Page } from "@/ui/page";

const tabs: { to: string; name: string; icon: Icon; scope: Scope }[] = [
	{ to: "/settings", name: "Workspace", icon: SettingsIcon, scope: "read" },
	{ to: "/settings/members", name: "Members", icon: MembersIcon, scope: "admin" },
	{ to: "/settings/oauth-apps", name: "OAuth apps", icon: PlugIcon, scope: "admin" },
	{ to: "/settings/integrations", name: "Integrations", icon: PieceIcon, scope: "read" },
	{ to: "/settings/usage", name: "Plan and usage", icon: ChartIcon, scope: "read" },
	{ to: "/settings/audit", name: "Audit log", icon: LogIcon, scope: "admin" },
	{ to: "/settings/account", name: "Your account", icon: UserIcon, scope: "read" },
];

/** SettingsFrame is the layout of the settings pages, with their navigation. */
export function SettingsFrame({ children }: { children: ReactNode }) {
	const admin = useMay("admin");
	return (
		<Page>
			<nav aria-label="Settings" className="-mb-2 flex gap-1 overflow-x-auto border-b pb-2">
				{tabs
					.filter((tab) => tab.scope === "read" || admin)
					.map((tab) => (
						<Link
							key={tab.to}
							to={tab.to}
							activeOptions={{ exact: tab.to === "/settings", includeSearch: false }}
							className="flex h-8 shrink-0 items-center gap-2 rounded-6 px-3 font-medium text-muted hover:bg-sunken hover:text-text"
							activeProps={{ className: "bg-sunken text-text!", "aria-current": "page" }}
						>
							<tab.icon />
							{tab.name}
						</Link>
					))}
			</nav>
			{children}
		</Page>
	);
}

/** Section is a card with a heading and a form or a few facts. */
export function Section({ title, lead, children }: { title: string; lead?: ReactNode; children: ReactNode }) {
	return (
		<section className="grid gap-x-8 gap-y-4 border-b py-6 first:pt-0 last:border-b-0 md:grid-cols-[240px_1fr]">
			<div>
				<h2 className="text-14 font-semibold">{title}</h2>
				{lead && <p className="mt-1 text-muted">{lead}</p>}
			</div>
			<div className="min-w-0">{children}</div>
		</section>
	);
}
