import { lazy, type ReactNode, Suspense } from "react";
import { indent, isJson } from "@/api/raw-json";
import { CodeBlock } from "@/ui/code";
import { formatBytes, formatNumber } from "@/ui/format";
import { ErrorState, Skeleton } from "@/ui/states";
import { parseCsv, separatorOf } from "./csv";
import { type StoredFile, usePart } from "./data";
import { classify } from "./kind";
import { Media } from "./media";
import { Note } from "./note";
import { decodeText, mediaBytes, type Part, textBytes, textLines } from "./part";

const PdfContent = lazy(() => import("./pdf/pdf"));

/** Content shows what is in a file, as far as a browser can show it without executing it. */
export function Content({ file }: { file: StoredFile }) {
	const { kind } = classify(file);
	if (file.size === 0) return <Note>The file is empty.</Note>;
	switch (kind) {
		case "other":
			return <Note>There is no preview for files of this type.</Note>;
		case "image":
		case "svg":
		case "audio":
		case "video":
		case "pdf":
			if (file.size > mediaBytes)
				return <Note>Files of this type are shown up to {formatBytes(mediaBytes)}. Download it instead.</Note>;
			return <Loaded file={file} most={mediaBytes} show={(part) => <Binary file={file} bytes={part.bytes} />} />;
		default:
			return <Loaded file={file} most={textBytes} show={(part) => <TextContent file={file} part={part} />} />;
	}
}

function Binary({ file, bytes }: { file: StoredFile; bytes: Part["bytes"] }) {
	if (classify(file).kind !== "pdf") return <Media file={file} bytes={bytes} />;
	return (
		<Suspense fallback={<Skeleton className="h-[60dvh] w-full shrink-0" />}>
			<PdfContent name={file.name} bytes={bytes} />
		</Suspense>
	);
}

interface LoadedProps {
	file: StoredFile;
	most: number;
	show: (part: Part) => ReactNode;
}

function Loaded({ file, most, show }: LoadedProps) {
	const part = usePart(file, most);
	if (part.error) return <ErrorState error={part.error} onRetry={() => void part.refetch()} />;
	return part.data ? show(part.data) : <Skeleton className="h-48 w-full shrink-0" />;
}

function TextContent({ file, part }: { file: StoredFile; part: Part }) {
	const text = decodeText(part);
	if (text === undefined) return <Note>The file contains bytes that are not text.</Note>;
	const first = part.partial && `The first ${formatBytes(part.bytes.length)} of ${formatBytes(file.size)}.`;
	switch (classify(file).kind) {
		case "csv":
			return <CsvContent text={text} partial={part.partial} />;
		case "lines":
			return <LineContent text={text} part={part} file={file} />;
		case "json": {
			const valid = !part.partial && isJson(text);
			return <Source code={valid ? indent(text) : text} note={first || (!valid && "This is not valid JSON.")} />;
		}
		default:
			return <Source code={text} note={first} />;
	}
}

function Source({ code, note }: { code: string; note?: ReactNode }) {
	return (
		<div className="flex min-w-0 flex-col gap-1">
			<CodeBlock code={code} label="Content" wrap />
			{note && <p className="text-12 text-muted">{note}</p>}
		</div>
	);
}

/** How many lines are shown, and how much of each. */
const shownLines = 100;
const shownLength = 2_000;

function LineContent({ text, part, file }: { text: string; part: Part; file: StoredFile }) {
	const lines = textLines(text, part.partial);
	const shown = lines
		.slice(0, shownLines)
		.map((line) => (line.length > shownLength ? `${line.slice(0, shownLength)}…` : line));
	if (lines.length === 0) return <Source code={text} note={`The start of a line of ${formatBytes(file.size)}.`} />;
	const count = part.partial
		? `The first ${formatNumber(shown.length)} lines of ${formatBytes(file.size)}.`
		: lines.length > shown.length
			? `The first ${formatNumber(shown.length)} of ${formatNumber(lines.length)} lines.`
			: lines.length === 1
				? "1 line."
				: `${formatNumber(lines.length)} lines.`;
	return <Source code={shown.join("\n")} note={count} />;
}

/** How much of a CSV file is shown. */
const shownRows = 200;
const shownColumns = 50;

function CsvContent({ text, partial }: { text: string; partial: boolean }) {
	// One row more than is shown, to know whether there are more.
	const rows = parseCsv(text, shownRows + 2, separatorOf(text));
	const more = rows.length > shownRows + 1;
	// The last row that was loaded may be incomplete.
	const [header = [], ...body] = more
		? rows.slice(0, shownRows + 1)
		: partial && rows.length > 1
			? rows.slice(0, -1)
			: rows;
	const width = Math.max(header.length, ...body.map((row) => row.length));
	const columns = Array.from({ length: Math.min(width, shownColumns) }, (_, at) => at);
	return (
		<div className="flex min-w-0 flex-col gap-1">
			<section
				aria-label="Content"
				// biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard
				tabIndex={0}
				className="max-h-96 overflow-auto rounded-8 border"
			>
				<table aria-label="Rows of the file" className="w-full border-collapse text-left">
					<thead>
						<tr>
							{columns.map((at) => (
								<th
									key={at}
									scope="col"
									className="sticky top-0 max-w-60 truncate border-b bg-surface px-3 py-2 font-medium"
								>
									{header[at]?.slice(0, shownLength)}
								</th>
							))}
						</tr>
					</thead>
					<tbody>
						{body.map((row, line) => (
							// biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
							<tr key={line} className="border-b last:border-b-0">
								{columns.map((at) => (
									<td key={at} className="max-w-60 truncate px-3 py-1.5" title={row[at]?.slice(0, shownLength)}>
										{row[at]?.slice(0, shownLength)}
									</td>
								))}
							</tr>
						))}
					</tbody>
				</table>
			</section>
			<p className="text-12 text-muted">
				{more || partial
					? `The first ${formatNumber(body.length)} rows`
					: body.length === 1
						? "1 row"
						: `${formatNumber(body.length)} rows`}
				{width > shownColumns && `, and the first ${shownColumns} of ${formatNumber(width)} columns`}.
			</p>
		</div>
	);
}
