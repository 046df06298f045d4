import type { Separator } from "@/shared/files/csv";
import { formatBytes } from "@/ui/format";
import type { Table } from "./data";

/** The largest file that is imported, in bytes. */
const maxFileBytes = 50 << 20;

/** How much of the file is in memory while it is being split. */
const chunkBytes = 1 << 20;

/** How many rows and index entries one request may write; a file counts as several of them. */
const maxWrites = 5_000;
const fileWrites = 4;

/** rowsPerRequest returns how many rows of a table one request can import. */
export function rowsPerRequest({ columns }: Pick<Table, "columns">): number {
	let writes = 1;
	for (const { type, indexed } of columns) writes += indexed ? 1 : type === "file" ? fileWrites : 0;
	return Math.max(1, Math.floor(maxWrites / writes));
}

/** Part is a sequence of rows of a CSV file that one request imports, together with the header. */
export interface Part {
	/** Where the rows are in the file, in bytes. */
	from: number;
	to: number;
	/** The first and the last line of the rows in the file, counted from 1. */
	line: number;
	lastLine: number;
	/** The number of the first row, counted from 1 without the header. */
	first: number;
	rows: number;
}

export interface Split {
	file: Blob;
	/** Where the header ends in the file: the offset in bytes and the number of its last line. */
	header: { to: number; lastLine: number };
	/** At least one part, even if the file has no rows. */
	parts: [Part, ...Part[]];
	rows: number;
}

/** partContent returns what is sent to import a part. */
export function partContent({ file, header }: Split, { from, to }: Part): Promise<ArrayBuffer> {
	return new Blob([file.slice(0, header.to), file.slice(from, to)]).arrayBuffer();
}

/** lineInFile converts the number of a line in what is sent to the number of the line in the file. */
export function lineInFile({ header }: Split, part: Part, line: number): number {
	return line <= header.lastLine ? line : part.line + (line - header.lastLine - 1);
}

/**
 * splitCsv splits a CSV file into parts of at most `limit.rows` rows and, with the header,
 * `limit.bytes` bytes. It throws if the file or one of its rows is too large.
 */
export async function splitCsv(
	file: Blob,
	limit: { rows: number; bytes: number },
	separator: Separator = ",",
): Promise<Split> {
	if (file.size > maxFileBytes)
		throw new Error(
			`The file has ${formatBytes(file.size)}. Files of up to ${formatBytes(maxFileBytes)} can be imported: split it into smaller ones.`,
		);
	let header: Split["header"] | undefined;
	const parts: Part[] = [];
	let rows = 0;
	await eachRecord(file, separator, ({ from, to, line, lastLine }) => {
		const size = to - from + (header?.to ?? 0);
		if (size > limit.bytes)
			throw new Error(
				`Line ${line} cannot be imported: with the first line it has ${formatBytes(size)}, and a request can have ${formatBytes(limit.bytes)}. Check the quotes of its fields.`,
			);
		if (!header) {
			header = { to, lastLine };
			return;
		}
		rows++;
		const last = parts.at(-1);
		if (last && last.rows < limit.rows && header.to + to - last.from <= limit.bytes) {
			last.to = to;
			last.lastLine = lastLine;
			last.rows++;
		} else parts.push({ from, to, line, lastLine, first: rows, rows: 1 });
	});
	header ??= { to: file.size, lastLine: 1 };
	const end = header.to;
	const [
		first = { from: end, to: end, line: header.lastLine + 1, lastLine: header.lastLine, first: 1, rows: 0 },
		...more
	] = parts;
	return { file, header, parts: [first, ...more], rows };
}

/** CsvRecord says where the header or a row is in a file. */
type CsvRecord = Pick<Part, "from" | "to" | "line" | "lastLine">;

const quote = 0x22;
const newline = 0x0a;
const carriageReturn = 0x0d;

/**
 * Where in a record the next byte is. A quote is special only at the start of a field and in
 * a quoted field, where it is the end of the field or the first of two quotes.
 */
type Place = "field start" | "unquoted" | "quoted" | "after quote";

/** eachRecord calls `found` for each record that is not an empty line, as the server reads them. */
async function eachRecord(file: Blob, separator: Separator, found: (record: CsvRecord) => void): Promise<void> {
	const scanner = new Scanner(separator.charCodeAt(0), found);
	scanner.offset = (await startsWithMark(file)) ? 3 : 0;
	while (scanner.offset < file.size) {
		const { offset } = scanner;
		scanner.scan(new Uint8Array(await file.slice(offset, offset + chunkBytes).arrayBuffer()));
	}
	scanner.end();
}

/** Scanner finds the records of a file whose bytes it gets in chunks. */
class Scanner {
	offset = 0;
	private place: Place = "field start";
	private empty = true;
	private from = 0;
	private line = 1;
	private lastLine = 1;

	constructor(
		private readonly separator: number,
		private readonly found: (record: CsvRecord) => void,
	) {}

	/** scan reads the next bytes. All special characters are ASCII, so they need not be decoded. */
	scan(bytes: Uint8Array): void {
		const start = this.offset;
		let { place, empty } = this;
		for (let at = 0; at < bytes.length; at++) {
			const byte = bytes[at];
			if (byte === newline && place !== "quoted") {
				this.offset = start + at + 1;
				this.empty = empty;
				this.end();
				place = "field start";
				empty = true;
				continue;
			}
			if (byte === newline) this.lastLine++;
			else if (byte !== carriageReturn) empty = false;
			if (place === "quoted") {
				if (byte === quote) place = "after quote";
			} else if (byte === this.separator) place = "field start";
			else if (byte === quote && place !== "unquoted") place = "quoted";
			else place = "unquoted";
		}
		this.offset = start + bytes.length;
		this.place = place;
		this.empty = empty;
	}

	/** end ends a record, after its line break or at the end of the file. */
	end(): void {
		const { from, offset: to, line, lastLine } = this;
		if (!this.empty) this.found({ from, to, line, lastLine });
		this.from = to;
		this.line = ++this.lastLine;
	}
}

/** startsWithMark reports whether a file starts with a byte order mark. */
async function startsWithMark(file: Blob): Promise<boolean> {
	const [a, b, c] = new Uint8Array(await file.slice(0, 3).arrayBuffer());
	return a === 0xef && b === 0xbb && c === 0xbf;
}
