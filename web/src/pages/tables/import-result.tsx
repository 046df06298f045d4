import type { ApiError } from "@/api/error";
import { cx } from "@/ui/class";
import { formatNumber } from "@/ui/format";
import { sentence } from "@/ui/sentence";
import { ErrorNote } from "@/ui/states";
import type { Table } from "./data";
import type { Part, Split } from "./import-parts";
import type { Imported } from "./import-send";

interface Props {
	table: Table;
	split: Split;
	imported: Imported;
}

/** ImportResult says what was imported of a file that was not imported completely, and why. */
export function ImportResult({ table, split, imported }: Props) {
	const { rows, failed } = imported;
	if (!failed && rows === split.rows) return null;
	const problems = failed?.error.fields.filter(({ line }) => line !== undefined) ?? [];
	const note = failed && problems.length === 0 && <ErrorNote error={failed.error} />;
	if (note && split.parts.length === 1) return note;
	return (
		<>
			{note}
			<div
				role={failed ? "alert" : "status"}
				className={cx(
					"flex flex-col gap-1 rounded-6 border-l-4 px-3 py-2",
					failed ? "border-failed bg-failed-soft" : "border-control bg-sunken",
				)}
			>
				<p className={cx(failed && "text-failed")}>{summary(imported)}</p>
				{problems.length > 0 && (
					<ul className="flex flex-col gap-1">
						{problems.map(({ pointer, line, message }) => (
							<li key={`${line} ${pointer}`} className="break-words">
								<span className="mr-2 font-medium tabular">
									Line {line}
									{pointer && `, column ${pointer.slice(1)}`}
								</span>
								{sentence(message)}
							</li>
						))}
					</ul>
				)}
				{rows > 0 && <p>{advice(table, split, rows)}</p>}
			</div>
		</>
	);
}

function summary({ rows, created, updated, failed }: Imported): string {
	const said = failed ? [] : ["The import was stopped."];
	if (rows > 0)
		said.push(
			`Rows 1 to ${formatNumber(rows)} were imported (${formatNumber(created)} added, ${formatNumber(updated)} updated).`,
		);
	const unknown = failed && isUncertain(failed.error);
	if (unknown) said.push(uncertain(failed.part));
	said.push(rows > 0 || unknown ? "The rest was not imported." : "Nothing was imported.");
	return said.join(" ");
}

/** isUncertain reports whether the server may have imported the part in spite of the error. */
function isUncertain({ status, code }: ApiError): boolean {
	return status >= 500 || code === "unreachable";
}

function uncertain({ first, rows }: Part): string {
	const range = `rows ${formatNumber(first)} to ${formatNumber(first + rows - 1)}`;
	return `It is not known whether ${range} were imported: look for them in the table.`;
}

/** advice says how to import the rest of a file. */
function advice({ key }: Table, { header, parts }: Split, rows: number): string {
	if (key !== null)
		return "You can import the whole file again: rows that are in the table already are updated, not added twice.";
	const last = parts.findLast(({ first }) => first <= rows)?.lastLine ?? header.lastLine;
	return `To import the rest, remove the lines ${header.lastLine + 1} to ${last} from the file. Otherwise their rows are added twice.`;
}
