const maxLength = 63;

export const idPattern = /^[a-z][a-z0-9_]{0,62}$/;
export const idRule = "must start with a letter a-z and contain only a-z, 0-9 and _, at most 63 characters";

/** Converts text to an id: "Get the order" becomes get_the_order. */
export function idFrom(text: string): string {
	const plain = text
		.normalize("NFKD")
		.toLowerCase()
		.replace(/\p{M}/gu, "")
		.replace(/[^a-z0-9]+/g, "_")
		.replace(/^[^a-z]+|_+$/g, "");
	return plain.slice(0, maxLength) || "step";
}

/** A free id based on the given one: get, get_2, get_3. */
export function freshId(like: string, taken: ReadonlySet<string>): string {
	if (!taken.has(like)) return like;
	const stem = like.replace(/_\d+$/, "");
	for (let n = 2; ; n++) {
		const end = `_${n}`;
		const id = stem.slice(0, maxLength - end.length) + end;
		if (!taken.has(id)) return id;
	}
}
