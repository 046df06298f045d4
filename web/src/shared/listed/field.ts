import type { Choice, JsonSchema } from "./schema";
import { typesOf } from "./schema";

/** What lists the values of an input, or the members of an object. */
export interface Listed {
	/** The operation that lists. */
	readonly operation: string;
	/** The inputs that decide what is listed, and those of them without which nothing is. */
	readonly dependsOn: readonly string[];
	readonly needs: readonly string[];
	readonly searchable: boolean;
}

/** A field whose values are listed. */
export interface ListedField {
	readonly label: string;
	/** Distinguishes a list of values from one of members. */
	readonly kind: string;
	/** Shown in an empty field. */
	readonly placeholder?: string;
	/** The field takes numbers; whether only whole ones. */
	readonly whole?: boolean;
	/** For what the account of a connection lists. */
	readonly listed?: Listed;
	/** For a listed value whose list is known. */
	readonly choices?: readonly Choice[];
}

/** listedBy returns what lists the values of an input with a schema, if anything does. */
export function listedBy(schema: JsonSchema): Listed | undefined {
	const operation = schema["x-options"] ?? schema["x-fields"];
	if (operation === undefined) return undefined;
	return {
		operation,
		dependsOn: schema["x-depends-on"] ?? [],
		needs: schema["x-needs"] ?? [],
		searchable: schema["x-searchable"] ?? false,
	};
}

/** wholeOf reports whether an input takes whole numbers only; it is undefined if it takes no numbers. */
export function wholeOf(schema: JsonSchema): boolean | undefined {
	const types = typesOf(schema);
	return types.some((type) => type === "integer" || type === "number") ? types.includes("integer") : undefined;
}

const initials: Readonly<Record<string, string>> = {
	url: "URL",
	id: "ID",
	json: "JSON",
	html: "HTML",
	sql: "SQL",
	cc: "CC",
	github: "GitHub",
	hmac: "HMAC",
};

/** A field name as a label: follow_redirects becomes "Follow redirects". */
export function words(name: string): string {
	const all = name.split("_").map((word) => initials[word] ?? word);
	const text = all.join(" ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}

export function isEmpty(value: unknown): boolean {
	return value === undefined || value === null || value === "";
}
