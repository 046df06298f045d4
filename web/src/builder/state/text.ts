import { type Content, contentOf, parse, print } from "@/builder/text/content";
import { reconcile } from "@/builder/text/reconcile";
import type { Snapshot } from "./snapshot";

const known = new WeakMap<Snapshot, string>();

/** The text of a snapshot: what was written with the edits since worked in, or one made of the document. */
export function textOf(snapshot: Snapshot): string {
	const before = known.get(snapshot);
	if (before !== undefined) return before;
	const text = snapshot.written === null ? print(contentOf(snapshot.doc, about(snapshot))) : worked(snapshot);
	known.set(snapshot, text);
	return text;
}

function about({ name, description }: Snapshot): { name: string; description?: string } {
	return description === null ? { name } : { name, description };
}

/** A text that names no name or description goes on without. */
function worked(snapshot: Snapshot): string {
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
	);
}

/** The snapshot that a text makes of another: what the text does not say stays. */
export function withText(snapshot: Snapshot, text: string, content: Content): Snapshot {
	const { triggers, steps, settings, layout } = content;
	const next: Snapshot = {
		doc: { triggers, steps, settings, layout: layout ?? snapshot.doc.layout, pinned: snapshot.doc.pinned },
		name: content.name ?? snapshot.name,
		description: content.description === undefined ? snapshot.description : content.description,
		written: text,
	};
	known.set(next, text);
	return next;
}
