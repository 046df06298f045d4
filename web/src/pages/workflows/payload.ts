/** readPayload parses the typed payload of a run: an object, or {} if empty. */
export function readPayload(text: string): { payload?: Record<string, unknown>; problem?: string } {
	if (text.trim() === "") return { payload: {} };
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch (error) {
		return { problem: `This is not valid JSON: ${(error as Error).message}` };
	}
	if (typeof value !== "object" || value === null || Array.isArray(value))
		return { problem: 'The payload must be an object, as in { "name": "Ada" }.' };
	return { payload: value as Record<string, unknown> };
}
