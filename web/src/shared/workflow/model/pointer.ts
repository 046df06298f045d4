import { isObject } from "./json";

// JSON pointers (RFC 6901), which identify fields and problems.

export function pointer(...members: readonly (string | number)[]): string {
	return members.map((member) => `/${String(member).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

export function members(at: string): string[] {
	if (at === "") return [];
	return at
		.slice(1)
		.split("/")
		.map((member) => member.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Whether a pointer is equal to another one or inside it. */
export function within(inner: string, outer: string): boolean {
	return inner === outer || inner.startsWith(`${outer}/`);
}

export function get(value: unknown, at: string): unknown {
	let here = value;
	for (const member of members(at)) {
		if (Array.isArray(here)) here = here[Number(member)];
		else if (isObject(here) && Object.hasOwn(here, member)) here = here[member];
		else return undefined;
	}
	return here;
}

/** Sets the value at a pointer; undefined removes it. Missing objects are created, and empty ones are kept. */
export function set(value: unknown, at: string, to: unknown): unknown {
	return setAt(value, members(at), to);
}

function setAt(value: unknown, [head, ...rest]: readonly string[], to: unknown): unknown {
	if (head === undefined) return to;
	if (Array.isArray(value)) {
		const copy = [...value];
		const i = head === "-" ? copy.length : Number(head);
		const inner = setAt(copy[i], rest, to);
		if (inner === undefined) copy.splice(i, 1);
		else copy[i] = inner;
		return copy;
	}
	const object = isObject(value) ? value : {};
	const inner = setAt(Object.hasOwn(object, head) ? object[head] : undefined, rest, to);
	if (inner !== undefined) return { ...object, [head]: inner };
	return Object.fromEntries(Object.entries(object).filter(([key]) => key !== head));
}
