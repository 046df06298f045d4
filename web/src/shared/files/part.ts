import { api } from "@/api/client";

/** How much of a text is loaded. */
export const textBytes = 256 << 10;

/** The largest image, audio, video or PDF that is loaded. */
export const mediaBytes = 64 << 20;

/** Part is a file, or the start of it. */
export interface Part {
	bytes: Uint8Array<ArrayBuffer>;
	/** There is more. */
	partial: boolean;
}

/** loadPart loads at most so many bytes of a file, from its start. */
export async function loadPart(
	{ id, size }: { id: string; size: number },
	most: number,
	signal?: AbortSignal,
): Promise<Part> {
	const partial = size > most;
	const { data } = await api.GET("/v1/files/{id}", {
		params: { path: { id } },
		headers: partial ? { Range: `bytes=0-${most - 1}` } : {},
		parseAs: "stream",
		signal,
	});
	// A proxy may ignore the range, so no more is read than was asked for.
	return { bytes: await readMost(data ?? undefined, Math.min(size, most)), partial };
}

async function readMost(
	stream: ReadableStream<Uint8Array> | undefined,
	most: number,
): Promise<Uint8Array<ArrayBuffer>> {
	const bytes = new Uint8Array(most);
	let length = 0;
	const reader = stream?.getReader();
	while (reader && length < most) {
		const { done, value } = await reader.read();
		if (done) break;
		const piece = value.subarray(0, most - length);
		bytes.set(piece, length);
		length += piece.length;
	}
	await reader?.cancel();
	return bytes.subarray(0, length);
}

/** decodeText returns the text of a file; undefined if the bytes are not text. */
export function decodeText({ bytes, partial }: Part): string | undefined {
	const encoding = encodingOf(bytes);
	if (encoding === "utf-8" && bytes.includes(0)) return undefined;
	// As a stream, so that a character that is cut off at the end is left out.
	return new TextDecoder(encoding).decode(bytes, { stream: partial });
}

/** encodingOf returns the encoding that the first bytes announce, or UTF-8. */
function encodingOf([first, second]: Uint8Array): string {
	if (first === 0xff && second === 0xfe) return "utf-16le";
	if (first === 0xfe && second === 0xff) return "utf-16be";
	return "utf-8";
}

/** textLines returns the complete lines of a text. */
export function textLines(text: string, partial: boolean): string[] {
	const lines = text.split(/\r?\n/);
	// The last one is empty after a final line break, and incomplete if there is more.
	if (partial || lines.at(-1) === "") lines.pop();
	return lines;
}
