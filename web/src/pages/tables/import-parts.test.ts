import { describe, expect, it, test } from "vitest";
import { lineInFile, type Part, partContent, rowsPerRequest, splitCsv } from "./import-parts";
import type { Column } from "./value";

const large = { rows: 1_000, bytes: 1 << 20 };

/** contents returns what is sent for each part of a file. */
async function contents(text: string, limit: Partial<typeof large>): Promise<string[]> {
	const split = await splitCsv(new Blob([text]), { ...large, ...limit });
	return Promise.all(
		split.parts.map(async (part) =>
			new TextDecoder("utf-8", { ignoreBOM: true }).decode(await partContent(split, part)),
		),
	);
}

describe("a file", () => {
	it("that fits is one part", async () => {
		const text = 'a,b\n1,"x\ny"\n3,4\n';
		expect(await contents(text, { rows: 2, bytes: text.length })).toEqual([text]);
	});

	it("is split after as many rows as fit, with the header in each part", async () => {
		expect(await contents("a\n1\n2\n3\n4\n5", { rows: 2 })).toEqual(["a\n1\n2\n", "a\n3\n4\n", "a\n5"]);
	});

	it("is split where a request would become too large, counted in bytes", async () => {
		expect(await contents("a\né\n2\n3\n", { bytes: 7 })).toEqual(["a\né\n2\n", "a\n3\n"]);
		expect(await contents("a\néé\n2\n3\n", { bytes: 7 })).toEqual(["a\néé\n", "a\n2\n3\n"]);
	});

	it("is not split inside quotes", async () => {
		expect(await contents('"a","b"\r\n"1,\n""\n",x\r\n2,"\n"\r\n', { rows: 1 })).toEqual([
			'"a","b"\r\n"1,\n""\n",x\r\n',
			'"a","b"\r\n2,"\n"\r\n',
		]);
		expect(await contents('\uFEFF"a\nb"\n1\n2\n', { rows: 1 })).toEqual(['\uFEFF"a\nb"\n1\n', '\uFEFF"a\nb"\n2\n']);
	});

	it("with a quote inside a field is split as the server reads it", async () => {
		expect(await contents('a\n1"\n2\n"3"4"\n5\n', { rows: 1 })).toEqual(['a\n1"\n', "a\n2\n", 'a\n"3"4"\n', "a\n5\n"]);
	});

	it("with semicolons is not split inside quotes", async () => {
		const text = 'a;b\n1;"2\n3"\n4,"5\n';
		const split = await splitCsv(new Blob([text]), { ...large, rows: 1 }, ";");
		expect(split.parts.map(({ from, to }) => text.slice(from, to))).toEqual(['1;"2\n3"\n', '4,"5\n']);
	});

	it("has empty lines that are no rows", async () => {
		const split = await splitCsv(new Blob(["\na\n\r\n1\n\n2\n\n\n"]), { ...large, rows: 1 });
		expect(split.rows).toBe(2);
		expect(split.parts.map(({ line, lastLine }) => [line, lastLine])).toEqual([
			[4, 4],
			[6, 6],
		]);
	});

	it.each(["", "a,b", "a,b\n"])("without rows is sent: %j", async (text) => {
		expect(await contents(text, {})).toEqual([text]);
	});

	it("larger than a chunk that is read at a time is split into all of its rows", async () => {
		const rows = Array.from({ length: 60_000 }, (_, at) => `${at},"line\n${at}, ""quoted"""\n`);
		const split = await splitCsv(new Blob(["n,text\n", ...rows]), { rows: 25_000, bytes: 4 << 20 });
		expect(split.parts.map(({ first, rows, line }) => [first, rows, line])).toEqual([
			[1, 25_000, 2],
			[25_001, 25_000, 50_002],
			[50_001, 10_000, 100_002],
		]);
		const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await partContent(split, split.parts[2] as Part));
		expect(text).toBe(`n,text\n${rows.slice(50_000).join("")}`);
	});

	it("with a row that no request can have is rejected, with the line", async () => {
		await expect(splitCsv(new Blob(["a\n1\n22222222\n"]), { ...large, bytes: 8 })).rejects.toThrow("Line 3 cannot");
	});

	it("of more than 50 MiB is rejected", async () => {
		const file = { size: (50 << 20) + 1 } as Blob;
		await expect(splitCsv(file, large)).rejects.toThrow("Files of up to 50 MiB can be imported");
	});
});

test("a line of a part is a line of the file", async () => {
	const split = await splitCsv(new Blob(['"a\nb"\n1\n"2\n2"\n\n3\n4\n']), { ...large, rows: 2 });
	const [first, second] = split.parts as [Part, Part];
	expect([1, 2, 3, 4].map((line) => lineInFile(split, first, line))).toEqual([1, 2, 3, 4]);
	expect([1, 3, 4].map((line) => lineInFile(split, second, line))).toEqual([1, 7, 8]);
});

test("indexes and file columns reduce how many rows a request can import", () => {
	const column = (type: string, indexed = false) => ({ name: "a", type, indexed }) as Column;
	expect(rowsPerRequest({ columns: [column("text")] })).toBe(5_000);
	expect(rowsPerRequest({ columns: [column("text", true), column("file"), column("json")] })).toBe(833);
	expect(rowsPerRequest({ columns: Array(2_000).fill(column("file")) })).toBe(1);
});
