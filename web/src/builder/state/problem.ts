import { type Doc, nodeAt, nodePointer } from "@/builder/model";

/** Something that would stop the workflow from working. It belongs to a node, so that moving that does not lose it. */
export interface Problem {
	/** The step, or the trigger by `@id`; null for the workflow itself. */
	readonly node: string | null;
	/** The pointer inside the node, or from the top of the document. */
	readonly field: string;
	readonly message: string;
	readonly hint?: string;
}

export interface Finding {
	readonly pointer: string;
	readonly message: string;
	readonly hint?: string;
}

/** The problem of a pointer into a document. */
export function problemOf(doc: Doc, { pointer, message, hint }: Finding): Problem {
	const node = nodeAt(doc, pointer) ?? null;
	const start = node === null ? undefined : nodePointer(doc, node);
	const field = start === undefined ? pointer : pointer.slice(start.length);
	return { node, field, message, ...(hint ? { hint } : {}) };
}

/** The pointer from the top to where a problem is now; undefined if its node is gone. */
export function pointerOf(doc: Doc, problem: Problem): string | undefined {
	if (problem.node === null) return problem.field;
	const start = nodePointer(doc, problem.node);
	return start === undefined ? undefined : start + problem.field;
}

/** Several lists as one, each problem once. */
export function together(...lists: readonly (readonly Problem[])[]): Problem[] {
	const seen = new Map<string, Problem>();
	for (const problem of lists.flat()) {
		const key = `${problem.node}\n${problem.field}\n${problem.message}`;
		if (!seen.has(key)) seen.set(key, problem);
	}
	return [...seen.values()];
}
