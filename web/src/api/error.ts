import type { components } from "./schema";

export type FieldProblem = components["schemas"]["ErrorDetail"];

/** ApiError is every way in which a call can fail, as the dashboard shows it. */
export class ApiError extends Error {
	override name = "ApiError";
	constructor(
		/** The HTTP status; 0 when no answer came. */
		readonly status: number,
		readonly code: string,
		message: string,
		readonly fields: FieldProblem[] = [],
		readonly requestId = "",
		/** Seconds to wait before another try, where the server says so. */
		readonly retryAfter?: number,
	) {
		super(message);
	}

	/** field is what is wrong at a JSON pointer, such as "/name". */
	field(pointer: string): string | undefined {
		return this.fields.find((field) => field.pointer === pointer)?.message;
	}
}

/** toApiError makes an ApiError of anything that was thrown. */
export function toApiError(thrown: unknown): ApiError {
	if (thrown instanceof ApiError) return thrown;
	if (thrown instanceof TypeError) return new ApiError(0, "unreachable", "The server could not be reached.");
	return new ApiError(0, "unexpected", thrown instanceof Error ? thrown.message : String(thrown));
}

/** errorOf reads the error that an answer carries. */
export function errorOf(response: Response, body: unknown): ApiError {
	const error = (body as Partial<components["schemas"]["Error"]> | undefined)?.error;
	const wait = Number(response.headers.get("Retry-After"));
	return new ApiError(
		response.status,
		error?.code ?? "unexpected",
		error?.message ?? `The server answered ${response.status}.`,
		error?.details ?? [],
		error?.request_id ?? response.headers.get("X-Request-Id") ?? "",
		wait > 0 ? wait : undefined,
	);
}
