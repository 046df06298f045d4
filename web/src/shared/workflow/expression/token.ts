export type TokenKind = "name" | "keyword" | "string" | "number" | "operator" | "bracket" | "comment" | "error";

/** A token of an expression. */
export interface Token {
	readonly kind: TokenKind;
	readonly from: number;
	readonly to: number;
	/** As written; for a string, its value. */
	readonly value: string;
	/** The error, if any. */
	readonly message?: string;
}
