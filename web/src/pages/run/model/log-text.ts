import type { Schema } from "@/api/client";

type Line = Schema["LogLine"];

/** matchLines returns the lines that contain every word, in their level or message. */
export function matchLines(lines: readonly Line[], typed: string): readonly Line[] {
	const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
	if (words.length === 0) return lines;
	return lines.filter(({ level, message }) => {
		const text = `${level} ${message}`.toLowerCase();
		return words.every((word) => text.includes(word));
	});
}

/** logText returns log lines as the text of a file. */
export function logText(lines: readonly Line[]): string {
	return lines.map(({ at, level, message }) => `${at} ${level.padEnd(5)} ${message}\n`).join("");
}
