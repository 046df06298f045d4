import * as icons from "@/ui/icons";

export interface NavItem {
	name: string;
	to: string;
	icon: icons.Icon;
	/** The shortcut that opens the page. */
	keys?: string;
	group: "work" | "connect" | "manage";
}

/** The pages listed in the navigation and the command palette. */
export const navItems: NavItem[] = [
	{ name: "Workflows", to: "/workflows", icon: icons.WorkflowIcon, keys: "G W", group: "work" },
	{ name: "Runs", to: "/runs", icon: icons.RunsIcon, keys: "G R", group: "work" },
	{ name: "Approvals", to: "/approvals", icon: icons.ApprovalIcon, keys: "G A", group: "work" },
	{ name: "Templates", to: "/templates", icon: icons.TemplateIcon, keys: "G T", group: "work" },
	{ name: "Tables", to: "/tables", icon: icons.TableIcon, keys: "G D", group: "work" },
	{ name: "Files", to: "/files", icon: icons.FileIcon, keys: "G F", group: "work" },
	{ name: "Connections", to: "/connections", icon: icons.PlugIcon, keys: "G C", group: "connect" },
	{ name: "API keys", to: "/keys", icon: icons.KeyIcon, keys: "G K", group: "connect" },
	{ name: "Webhooks", to: "/webhooks", icon: icons.WebhookIcon, keys: "G H", group: "connect" },
	{ name: "Secrets & variables", to: "/secrets", icon: icons.SecretIcon, keys: "G V", group: "connect" },
	{ name: "Settings", to: "/settings", icon: icons.SettingsIcon, keys: "G S", group: "manage" },
	{ name: "API reference", to: "/reference", icon: icons.ReferenceIcon, group: "manage" },
];
