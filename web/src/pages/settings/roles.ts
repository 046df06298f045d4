import type { Role } from "@/api/session";

/** What each role may do, the mightiest first. */
export const roles: { value: Role; label: string; means: string }[] = [
	{ value: "owner", label: "Owner", means: "Everything, also members, keys and settings." },
	{ value: "editor", label: "Editor", means: "Builds workflows and runs them." },
	{ value: "operator", label: "Operator", means: "Runs, cancels and approves; changes no workflow." },
	{ value: "viewer", label: "Viewer", means: "Looks at everything, changes nothing." },
];

export const roleName = (role: Role): string => roles.find(({ value }) => value === role)?.label ?? role;
