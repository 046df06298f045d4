import type { Schema } from "@/api/client";
import { isEmpty } from "@/shared/listed/field";
import type { Json, JsonObject } from "@/shared/workflow/model";

export type Input = Schema["TemplateInput"];

/** What has been entered, by the names of inputs. Numbers are text while somebody enters them. */
export type Values = Readonly<Record<string, Json | undefined>>;

/** initialValues are the defaults of inputs. */
export function initialValues(inputs: readonly Input[]): Values {
	return Object.fromEntries(inputs.flatMap((input) => (isEmpty(input.default) ? [] : [[input.name, input.default]])));
}

/** givenValues are the values to send: those that are not empty, with numbers as numbers. */
export function givenValues(inputs: readonly Input[], values: Values): NonNullable<Schema["TemplateUse"]["inputs"]> {
	const out: Record<string, string | number | boolean> = {};
	for (const { name, type, default: initial } of inputs) {
		const value = values[name];
		const cleared = isEmpty(value) && !isEmpty(initial);
		if (cleared) out[name] = "";
		else if (!isEmpty(value)) out[name] = numberOf(type, value as string | number | boolean);
	}
	return out;
}

/** The server says what is wrong with text that is no number. */
function numberOf(type: string, value: string | number | boolean): string | number | boolean {
	if ((type !== "number" && type !== "integer") || typeof value !== "string") return value;
	const number = Number(value);
	return value.trim() === "" || Number.isNaN(number) ? value : number;
}

/** What a list of values depends on: inputs of the operation or the trigger, with the values of the template's. */
export function listingInput({ lists }: Input, values: Values): JsonObject {
	return Object.fromEntries(
		Object.entries(lists?.with ?? {}).flatMap(([name, from]) => {
			const value = values[from];
			return isEmpty(value) ? [] : [[name, value as Json]];
		}),
	);
}
