/** The separators of fields, the likeliest first. */
const separators = [",", ";", "\t", "|"] as const;

export type Separator = (typeof separators)[number];

/** separatorOf returns the separator that the first line has most of. */
export function separatorOf(text: string): Separator {
	const [line = ""] = text.replace(/"[^"]*"/g, "").split("\n", 1);
	const count = (separator: string) => line.split(separator).length;
	return separators.reduce((best, one) => (count(one) > count(best) ? one : best));
}

/** parseCsv returns the first lines of a CSV file, for a preview. */
export function parseCsv(text: string, most: number, separator: Separator = ","): string[][] {
	const lines: string[][] = [];
	const escaped = separator === "|" ? "\\|" : separator;
	const field = new RegExp(`("[^"]*(?:""[^"]*)*(?:"|$)|[^"${escaped}\\r\\n]*)(${escaped}|\\r?\\n|$)`, "y");
	let line: string[] = [];
	field.lastIndex = text.startsWith("\uFEFF") ? 1 : 0;
	while (lines.length < most && field.lastIndex < text.length) {
		const at = field.lastIndex;
		const found = field.exec(text);
		if (!found) {
			// A quote inside a field. The rest of the line is shown as it is.
			const end = text.indexOf("\n", at);
			lines.push([...line, text.slice(at, end < 0 ? undefined : end)]);
			line = [];
			field.lastIndex = end < 0 ? text.length : end + 1;
			continue;
		}
		const [, value = "", end] = found;
		line.push(value.startsWith('"') ? value.slice(1).replace(/"$/, "").replaceAll('""', '"') : value);
		if (end !== separator) {
			lines.push(line);
			line = [];
		} else if (field.lastIndex === text.length) {
			lines.push([...line, ""]);
		}
	}
	return lines.filter((one) => one.length > 1 || one[0] !== "");
}
