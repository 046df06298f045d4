/** Finds characters that are not allowed anywhere in a document. */
export function forbiddenCharacter(text: string): { offset: number; message: string } | undefined {
	const found =
		/[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]|[\u2028\u2029\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])/u.exec(text);
	if (!found) return undefined;
	const code = found[0].codePointAt(0) as number;
	if (code >= 0x10000) return forbiddenAfter(text, found.index + 2);
	const name = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
	if (code === 0xfeff) return { offset: found.index, message: "contains a byte order mark" };
	if (code === 0) return { offset: found.index, message: "contains a NUL character" };
	return { offset: found.index, message: `the character ${name} has to be written as an escape in double quotes` };
}

function forbiddenAfter(text: string, from: number): { offset: number; message: string } | undefined {
	const rest = forbiddenCharacter(text.slice(from));
	return rest && { ...rest, offset: rest.offset + from };
}
