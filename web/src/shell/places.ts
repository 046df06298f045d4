import * as icons from "@/ui/icons";

export interface Place {
	name: string;
	to: string;
	icon: icons.Icon;
	/** The keys that go there. */
	keys?: string;
	group: "work" | "connect" | "manage";
}

/** The pages that the navigation and the palette lead to. */
export const places: Place[] = [
	{ name: "Workflows", to: "/workflows", icon: icons.WorkflowIcon, keys: "G W", group: "work" },
	{ name: "Runs", to: "/runs", icon: icons.RunsIcon, keys: "G R", group: "work" },
	{ name: "Approvals", to: "/approvals", icon: icons.ApprovalIcon, keys: "G A", group: "work" },
	{ name: "Templates", to: "/templates", icon: icons.TemplateIcon, keys: "G T", group: "work" },
	{ name: "API keys", to: "/keys", icon: icons.KeyIcon, keys: "G K", group: "connect" },
	{ name: "Webhooks", to: "/webhooks", icon: icons.WebhookIcon, keys: "G H", group: "connect" },
	{ name: "Secrets & variables", to: "/secrets", icon: icons.SecretIcon, keys: "G V", group: "connect" },
	{ name: "Settings", to: "/settings", icon: icons.SettingsIcon, keys: "G S", group: "manage" },
	{ name: "API reference", to: "/reference", icon: icons.ReferenceIcon, group: "manage" },
];
