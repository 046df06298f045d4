import type { Token } from "./token";

/** A name followed by member accesses, as in steps.get.output["a b"]. */
export interface Chain {
	readonly root: string;
	readonly keys: readonly (string | number)[];
	readonly from: number;
	readonly to: number;
}

export function isDot(token: Token | undefined): boolean {
	return token?.kind === "operator" && (token.value === "." || token.value === "?.");
}

/** The chain that ends at a token; undefined if there is none. */
export function chainTo(tokens: readonly Token[], end: number): Chain | undefined {
	const last = tokens[end];
	if (!last) return undefined;
	if (last.kind === "name" || last.kind === "keyword") {
		if (!isDot(tokens[end - 1])) return { root: last.value, keys: [], from: last.from, to: last.to };
		return extend(chainTo(tokens, end - 2), last.value, last);
	}
	if (last.value !== "]" || last.kind !== "bracket" || tokens[end - 2]?.value !== "[") return undefined;
	const key = tokens[end - 1];
	const before = isDot(tokens[end - 3]) ? end - 4 : end - 3;
	if (key?.kind === "string") return extend(chainTo(tokens, before), key.value, last);
	return key?.kind === "number" ? extend(chainTo(tokens, before), Number(key.value), last) : undefined;
}

function extend(chain: Chain | undefined, key: string | number, last: Token): Chain | undefined {
	return chain && { ...chain, keys: [...chain.keys, key], to: last.to };
}
