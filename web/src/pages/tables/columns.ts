import type { Schema } from "@/api/client";
import type { ApiError } from "@/api/error";
import { tableColumnTypeValues } from "@/api/values";
import type { ColumnType } from "./value";

/** Draft is a column that is being written. */
export type Draft = Required<Schema["TableColumnCreate"]>;

export const newColumn: Draft = { name: "", type: "text", required: false, indexed: false };

export const exampleColumns: Draft[] = [
	{ ...newColumn, name: "email" },
	{ ...newColumn, name: "city", indexed: true },
	{ ...newColumn, name: "amount", type: "number" },
];

const typeNames: Record<ColumnType, string> = {
	text: "Text",
	number: "Number",
	boolean: "Boolean",
	time: "Time",
	json: "JSON",
	file: "File",
};

export const typeOptions = tableColumnTypeValues.map((value) => ({ value, label: typeNames[value] }));

export function typeName(type: ColumnType): string {
	return typeNames[type];
}

/** isOrdered reports whether values of a type can be compared, sorted and indexed. */
export function isOrdered(type: ColumnType): boolean {
	return type !== "json" && type !== "file";
}

/** canBeKey reports whether the values of a type can be the key of a table. */
export function canBeKey(type: ColumnType): boolean {
	return type === "text" || type === "number" || type === "time";
}

/** problemAt returns the messages of an error about a place and everything inside it. */
export function problemAt(error: ApiError | undefined, pointer: string): string | undefined {
	const found = error?.fields.filter((field) => field.pointer === pointer || field.pointer.startsWith(`${pointer}/`));
	return found?.length ? found.map(({ message }) => message).join("; ") : undefined;
}
