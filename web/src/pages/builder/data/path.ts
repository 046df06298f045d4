/** The MIME type of a path dragged from the data tree to a field. */
export const pathType = "application/x-stepmill-path";

/** Appends a member to a path: .name if possible, else ["name"]; [0] for lists. */
export function member(path: string, key: string | number): string {
	if (typeof key === "number") return `${path}[${key}]`;
	return /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
