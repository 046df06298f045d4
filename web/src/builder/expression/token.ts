export type TokenKind = "name" | "keyword" | "string" | "number" | "operator" | "bracket" | "comment" | "error";

/** A piece of an expression, from one offset of the text up to another. */
export interface Token {
	readonly kind: TokenKind;
	readonly from: number;
	readonly to: number;
	/** As written; of a string what it stands for. */
	readonly value: string;
	/** What is wrong with it. */
	readonly message?: string;
}
