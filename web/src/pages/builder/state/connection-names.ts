import { type Doc, walk } from "@/shared/workflow/model";

/** The present names of connections that were renamed, by their earlier names. */
export type PresentNames = ReadonlyMap<string, string>;

/** Returns where a document uses connections by earlier names, with their present ones. */
export function renamedConnections(doc: Doc, names: PresentNames): { pointer: string; name: string }[] {
	const found: { pointer: string; name: string }[] = [];
	const look = (pointer: string, connection: unknown) => {
		const name = typeof connection === "string" ? names.get(connection) : undefined;
		if (name !== undefined) found.push({ pointer: `${pointer}/connection`, name });
	};
	for (const [i, trigger] of doc.triggers.entries()) look(`/triggers/${i}`, trigger.connection);
	for (const { step, pointer } of walk(doc.steps)) look(pointer, step.connection);
	return found;
}
