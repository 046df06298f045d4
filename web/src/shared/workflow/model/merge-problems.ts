import { equal, omit } from "./json";
import type { Problem } from "./problems";
import { find, nodeAt, nodePointer } from "./tree";
import type { Doc } from "./types";

/** The problems that the server reported for a document. */
export interface Verdict {
	readonly doc: Doc;
	readonly problems: readonly Reported[];
	/** What can be saved but will not do what it should. */
	readonly warnings: readonly Reported[];
}

interface Reported {
	readonly pointer: string;
	readonly message: string;
	readonly hint?: string;
}

/**
 * The problems to show. The server's verdict is authoritative for the document it saw.
 * After a change it still holds for unchanged steps and triggers; the rest is checked
 * locally.
 */
export function mergeProblems(
	doc: Doc,
	local: readonly Problem[],
	verdict: Pick<Verdict, "doc" | "problems"> | null,
): Problem[] {
	if (!verdict) return [...local];
	if (sameDefinition(doc, verdict.doc))
		return verdict.problems.map((problem) => withNode(problem, nodeAt(doc, problem.pointer)));
	const said = new Set(local.map((problem) => problem.pointer));
	const held = verdict.problems.flatMap((problem) => {
		const moved = follow(doc, verdict.doc, problem.pointer);
		return moved === undefined || said.has(moved.pointer)
			? []
			: [withNode({ ...problem, pointer: moved.pointer }, moved.node)];
	});
	return [...local, ...held];
}

function sameDefinition(a: Doc, b: Doc): boolean {
	return equal(a.triggers, b.triggers) && equal(a.steps, b.steps) && equal(a.settings, b.settings);
}

function withNode(problem: Problem, node: string | undefined): Problem {
	return node === undefined ? problem : { ...problem, node };
}

/** The current position of a problem; undefined if its node changed. */
function follow(doc: Doc, seen: Doc, at: string): { pointer: string; node: string | undefined } | undefined {
	const node = nodeAt(seen, at);
	if (node === undefined) return equal(doc.settings, seen.settings) ? { pointer: at, node } : undefined;
	const was = nodePointer(seen, node);
	const now = nodePointer(doc, node);
	if (was === undefined || now === undefined || !equal(self(seen, node), self(doc, node))) return undefined;
	return { pointer: now + at.slice(was.length), node };
}

/** A step without its nested steps, or a trigger. */
function self(doc: Doc, node: string): unknown {
	if (node.startsWith("@")) return doc.triggers.find((trigger) => `@${trigger.id}` === node);
	const step = find(doc.steps, node)?.step;
	return step && omit(step, "steps");
}

/** The number of problems per node; problems inside a block also count for the block. */
export function countProblems(doc: Doc, problems: readonly Problem[]): Map<string, number> {
	const out = new Map<string, number>();
	for (const { node } of problems) {
		if (node === undefined) continue;
		const around = node.startsWith("@") ? [] : (find(doc.steps, node)?.path ?? []);
		for (const one of [node, ...around]) out.set(one, (out.get(one) ?? 0) + 1);
	}
	return out;
}
