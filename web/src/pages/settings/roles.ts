import type { Role } from "@/api/session";
import { roleValues } from "@/api/values";

const about: Record<Role, { label: string; description: string }> = {
	owner: { label: "Owner", description: "Full access, including members, API keys and settings." },
	editor: { label: "Editor", description: "Can build and run workflows." },
	operator: {
		label: "Operator",
		description: "Can start and cancel runs and decide approvals, but not change workflows.",
	},
	viewer: { label: "Viewer", description: "Can view everything, but not change anything." },
};

/** The roles and what they allow, the most powerful first. */
export const roles = roleValues.map((value) => ({ value, ...about[value] }));

export const roleName = (role: Role): string => about[role]?.label ?? role;
