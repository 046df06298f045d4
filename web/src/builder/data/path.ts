/** The type under which a path is dragged from the tree of data to a field. */
export const pathType = "application/x-stepmill-path";

/** A member of a path: .name where it can be written so, else ["name"]; [0] of a list. */
export function member(path: string, key: string | number): string {
	if (typeof key === "number") return `${path}[${key}]`;
	return /^[A-Za-z_][A-Za-z0-9_]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}
