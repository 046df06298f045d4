/** The part of the response that a step failing with http_error stores. */
export interface FailedResponse {
	status: number;
	/** The beginning of the body on one line; empty if the body is not text. */
	beginning: string;
}

const maxLength = 300;

/** responseOf returns the response stored in the output of a failed step, if any. */
export function responseOf(output: Record<string, unknown> | undefined): FailedResponse | undefined {
	if (typeof output?.status !== "number") return undefined;
	return { status: output.status, beginning: beginningOf(output.body) };
}

function beginningOf(body: unknown): string {
	if (body === undefined || body === null || isBinary(body)) return "";
	const text = (typeof body === "string" ? body.slice(0, 4 * maxLength) : JSON.stringify(body))
		.replace(/\s+/g, " ")
		.trim();
	return text.length > maxLength ? `${text.slice(0, maxLength).trimEnd()}…` : text;
}

/** isBinary reports whether a body is neither JSON nor text: {"base64": …}. */
function isBinary(body: unknown): boolean {
	return typeof body === "object" && body !== null && Object.keys(body).join() === "base64";
}
