import { api, got } from "@/api/client";
import { ApiError, toApiError } from "@/api/error";
import { lineInFile, type Part, partContent, type Split } from "./import-parts";

/** Imported says what of a file has been imported. */
export interface Imported {
	/** The rows of the parts that were imported, from the start of the file. */
	rows: number;
	created: number;
	updated: number;
	/** The part that failed, and why. Lines are those of the file. */
	failed?: { part: Part; error: ApiError };
}

/** importParts imports the parts of a file in order, until one fails or `stop` is signalled. */
export async function importParts(
	tableId: string,
	split: Split,
	stop: AbortSignal,
	onProgress: (rows: number) => void,
): Promise<Imported> {
	const done = { rows: 0, created: 0, updated: 0 };
	for (const part of split.parts) {
		if (stop.aborted) break;
		try {
			const answer = await sendPart(tableId, await partContent(split, part), stop);
			if (!answer) break;
			done.rows += part.rows;
			done.created += answer.created;
			done.updated += answer.updated;
			onProgress(done.rows);
		} catch (thrown) {
			return { ...done, failed: { part, error: placeInFile(toApiError(thrown), split, part) } };
		}
	}
	return done;
}

/** sendPart sends a part, again if there were too many requests. It returns nothing if it was stopped before that. */
async function sendPart(id: string, content: ArrayBuffer, stop: AbortSignal) {
	while (!stop.aborted) {
		try {
			return await got(
				api.POST("/v1/tables/{id}/import", {
					params: { path: { id } },
					headers: { "Content-Type": "text/csv" },
					body: content as never,
					bodySerializer: () => content,
				}),
			);
		} catch (thrown) {
			const { status, retryAfter } = toApiError(thrown);
			if (status !== 429 || retryAfter === undefined) throw thrown;
			await pause(retryAfter, stop);
		}
	}
	return undefined;
}

function pause(seconds: number, stop: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, seconds * 1000);
		stop.addEventListener("abort", () => {
			clearTimeout(timer);
			resolve();
		});
	});
}

/** placeInFile converts the lines that an error names to those of the file. */
function placeInFile(error: ApiError, split: Split, part: Part): ApiError {
	const fields = error.fields.map((field) => ({
		...field,
		...(field.line !== undefined && { line: lineInFile(split, part, field.line) }),
		// The first of two lines with the same key is named in the message.
		message: field.message.replace(
			/^line (\d+)(?= has the same key)/,
			(_, line) => `line ${lineInFile(split, part, Number(line))}`,
		),
	}));
	return new ApiError(error.status, error.code, error.message, fields, error.requestId, error.retryAfter);
}
