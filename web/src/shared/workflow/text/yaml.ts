import { type Document, parseDocument, visit } from "yaml";
import type { Json } from "../model/types";
import { forbiddenCharacter } from "./character";
import { isAbsent } from "./chunk";
import { Lines } from "./lines";
import { firstUnsupported } from "./unsupported";

// Parses YAML like the server does: version 1.2 with the core schema, without the features
// that make a document mean something other than it appears to.

export interface TextError {
	readonly message: string;
	/** Both start at 1; the column counts characters. */
	readonly line: number;
	readonly column: number;
	readonly offset: number;
	/** Of the affected value, if known. */
	readonly pointer?: string;
}

export interface Parsed {
	readonly source: string;
	readonly value: Json;
	readonly document: Document;
	readonly lines: Lines;
}

export function readYaml(source: string): Parsed | { readonly error: TextError } {
	// A lone carriage return is also a line break; offsets do not change.
	const text = source.replace(/\r(?!\n)/g, "\n");
	const lines = new Lines(text);
	const fail = (offset: number, message: string, at?: string): { error: TextError } => ({
		error: { message, offset, ...lines.at(offset), ...(at !== undefined && { pointer: at }) },
	});
	const bad = forbiddenCharacter(text);
	if (bad) return fail(bad.offset, bad.message);
	const document = parseDocument(text, {
		version: "1.2",
		schema: "core",
		merge: false,
		uniqueKeys: true,
		strict: true,
		prettyErrors: false,
		keepSourceTokens: true,
		resolveKnownTags: false,
	});
	const [first] = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
	if (first) return fail(Math.min(first.pos[0], text.length), friendly(first.code, first.message));
	if (document.directives.yaml.explicit || text.startsWith("%")) return fail(0, "directives are not allowed");
	if (isAbsent(document.contents)) return fail(text.length, "the document is empty");
	const beside = /^---[ \t]+(?![#\s])/m.exec(text);
	if (document.directives.docStart && beside)
		return fail(beside.index + 3, "the document begins on the line after ---");
	cutLastBreak(document, text);
	const failure = firstUnsupported(document, text);
	if (failure) return fail(failure.offset, failure.message, failure.pointer);
	return { source, value: document.toJS({ maxAliasCount: 0 }) as Json, document, lines };
}

/** A block scalar at the end of the document ends with a line break only if the document does. */
function cutLastBreak(document: Document, text: string): void {
	if (text.endsWith("\n")) return;
	visit(document, {
		Scalar(_, node) {
			const inLines = node.type === "BLOCK_LITERAL" || node.type === "BLOCK_FOLDED";
			if (inLines && typeof node.value === "string" && (node.range?.[1] ?? 0) >= text.length) {
				node.value = node.value.replace(/\n$/, "");
			}
		},
	});
}

function friendly(code: string, message: string): string {
	switch (code) {
		case "DUPLICATE_KEY":
			return "duplicate key";
		case "MULTIPLE_DOCS":
			return "there is more than one document";
		case "TAB_AS_INDENT":
			return "a tab cannot indent: use spaces";
		case "BAD_DIRECTIVE":
			return "directives are not allowed";
		default:
			return message.charAt(0).toLowerCase() + message.slice(1);
	}
}
