import { afterEach, expect, test, vi } from "vitest";
import { decodeText, loadPart, textLines } from "./part";

afterEach(() => vi.unstubAllGlobals());

const encode = (text: string) => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;

/** serve replaces fetch and returns the ranges that were asked for. */
function serve(respond: (range: string | null) => Response): (string | null)[] {
	const ranges: (string | null)[] = [];
	vi.stubGlobal("fetch", async (request: Request) => {
		const range = request.headers.get("Range");
		ranges.push(range);
		return respond(range);
	});
	return ranges;
}

test("a small file is loaded whole", async () => {
	const ranges = serve(() => new Response("hello"));
	const part = await loadPart({ id: "file_1", size: 5 }, 10);
	expect(decodeText(part)).toBe("hello");
	expect(part.partial).toBe(false);
	expect(ranges).toEqual([null]);
});

test("only the start of a large file is loaded", async () => {
	const ranges = serve(() => new Response("0123456789", { status: 206 }));
	const part = await loadPart({ id: "file_1", size: 5_000_000_000 }, 10);
	expect(decodeText(part)).toBe("0123456789");
	expect(part.partial).toBe(true);
	expect(ranges).toEqual(["bytes=0-9"]);
});

test("a response without end to a range is cut off", async () => {
	let cancelled = false;
	serve(
		() =>
			new Response(
				new ReadableStream({
					pull: (controller) => controller.enqueue(encode("0123456")),
					cancel: () => {
						cancelled = true;
					},
				}),
			),
	);
	const part = await loadPart({ id: "file_1", size: 5_000_000_000 }, 10);
	expect(decodeText(part)).toBe("0123456012");
	expect(cancelled).toBe(true);
});

test("an error is thrown with its code", async () => {
	const error = { code: "file_not_found", message: "There is no file.", details: [], request_id: "req_1" };
	serve(() => new Response(JSON.stringify({ error }), { status: 404 }));
	await expect(loadPart({ id: "file_1", size: 5 }, 10)).rejects.toMatchObject({ status: 404, code: "file_not_found" });
});

test("a character that is cut off is left out", () => {
	const bytes = encode("aé").subarray(0, 2);
	expect(decodeText({ bytes, partial: true })).toBe("a");
	expect(decodeText({ bytes, partial: false })).toBe("a\uFFFD");
});

test("text is recognized by its bytes", () => {
	const utf16 = new Uint8Array([0xff, 0xfe, 0x61, 0, 0xe9, 0]);
	expect(decodeText({ bytes: utf16, partial: false })).toBe("aé");
	expect(decodeText({ bytes: encode("\uFEFFa"), partial: false })).toBe("a");
	expect(decodeText({ bytes: new Uint8Array([0x61, 0, 0x62]), partial: false })).toBeUndefined();
});

test("incomplete lines are left out", () => {
	expect(textLines("a\r\nb\nc", false)).toEqual(["a", "b", "c"]);
	expect(textLines("a\nb\n", false)).toEqual(["a", "b"]);
	expect(textLines("a\nb\nc", true)).toEqual(["a", "b"]);
	expect(textLines("abc", true)).toEqual([]);
});
