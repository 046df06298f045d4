import type { ApiError } from "@/api/error";

/** A problem in a text, with its position. */
export interface Problem {
	message: string;
	pointer?: string;
	/** Both start at 1. */
	line?: number;
	column?: number;
}

/** problemsOf returns the problems that the server found in a text. */
export function problemsOf(error: ApiError): Problem[] {
	return error.fields.map(({ pointer, message, line, column }) => ({ pointer, message, line, column }));
}

/** offsetOf converts a line and a column, both starting at 1, to an offset. */
export function offsetOf(text: string, line: number, column: number): number {
	const lines = text.split(/\r\n|\r|\n/);
	let at = 0;
	for (let n = 0; n < Math.min(line - 1, lines.length - 1); n++) {
		at += (lines[n] as string).length;
		at += text.startsWith("\r\n", at) ? 2 : 1;
	}
	const own = lines[Math.min(line, lines.length) - 1] as string;
	return at + [...own].slice(0, column - 1).join("").length;
}
