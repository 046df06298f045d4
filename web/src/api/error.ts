import type { components } from "./schema";

export type FieldProblem = components["schemas"]["ErrorDetail"];

/** ApiError represents every way a call can fail. */
export class ApiError extends Error {
	override name = "ApiError";
	constructor(
		/** The HTTP status; 0 if there was no response. */
		readonly status: number,
		readonly code: string,
		message: string,
		readonly fields: FieldProblem[] = [],
		readonly requestId = "",
		/** Seconds to wait before retrying, if the server sent Retry-After. */
		readonly retryAfter?: number,
	) {
		super(message);
	}

	/** field returns the message for a JSON pointer, such as "/name". */
	field(pointer: string): string | undefined {
		return this.fields.find((field) => field.pointer === pointer)?.message;
	}
}

/** toApiError converts anything thrown to an ApiError. */
export function toApiError(thrown: unknown): ApiError {
	if (thrown instanceof ApiError) return thrown;
	if (thrown instanceof TypeError) return new ApiError(0, "unreachable", "The server could not be reached.");
	return new ApiError(0, "unexpected", thrown instanceof Error ? thrown.message : String(thrown));
}

/** errorOf reads the error from a response. */
export function errorOf(response: Response, body: unknown): ApiError {
	const error = (body as Partial<components["schemas"]["Error"]> | undefined)?.error;
	const wait = Number(response.headers.get("Retry-After"));
	return new ApiError(
		response.status,
		error?.code ?? "unexpected",
		error?.message ?? `The server responded with status ${response.status}.`,
		error?.details ?? [],
		error?.request_id ?? response.headers.get("X-Request-Id") ?? "",
		wait > 0 ? wait : undefined,
	);
}
