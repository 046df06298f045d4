import type { Edit } from "@/shared/workflow/model";
import { type Content, contentOf, parse, print } from "@/shared/workflow/text/content";
import { type Renamed, reconcile } from "@/shared/workflow/text/reconcile";
import type { Snapshot } from "./snapshot";

const textCache = new WeakMap<Snapshot, string>();

/** The text of a snapshot: the source with later edits merged in, or text generated from the document. */
export function textOf(snapshot: Snapshot): string {
	const before = textCache.get(snapshot);
	if (before !== undefined) return before;
	const text = snapshot.written === null ? print(contentOf(snapshot.doc, about(snapshot))) : reconciled(snapshot);
	textCache.set(snapshot, text);
	return text;
}

function about({ name, description }: Snapshot): { name: string; description?: string } {
	return description === null ? { name } : { name, description };
}

/** A text without a name or description stays without. */
function reconciled(snapshot: Snapshot, renamed?: Renamed): string {
	const written = snapshot.written as string;
	const read = parse(written);
	if ("errors" in read) return print(contentOf(snapshot.doc, about(snapshot)));
	const has = read.content;
	return reconcile(
		written,
		contentOf(snapshot.doc, {
			...(has.name === undefined ? {} : { name: snapshot.name }),
			...(has.description === undefined ? {} : { description: snapshot.description }),
		}),
		renamed,
	);
}

/**
 * Applies an operation to a snapshot. Most edits are merged into the text lazily. Renames
 * are merged at once, because later nothing tells which step of the text is which.
 */
export function withEdit(snapshot: Snapshot, { doc, renamed }: Edit): Snapshot {
	const next: Snapshot = { ...snapshot, doc };
	if (!renamed || snapshot.written === null) return next;
	return { ...next, written: reconciled({ ...next, written: textOf(snapshot) }, renamed) };
}

/** Applies text to a snapshot; what the text does not contain stays. */
export function withText(snapshot: Snapshot, text: string, content: Content): Snapshot {
	const { triggers, steps, settings, layout } = content;
	const next: Snapshot = {
		doc: { triggers, steps, settings, layout: layout ?? snapshot.doc.layout, pinned: snapshot.doc.pinned },
		name: content.name ?? snapshot.name,
		description: content.description === undefined ? snapshot.description : content.description,
		written: text,
	};
	textCache.set(next, text);
	return next;
}
