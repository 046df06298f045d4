import { toApiError } from "@/api/error";
import type { Doc } from "@/builder/model";
import type { Editor } from "./editor";
import { type Problem, problemOf, together } from "./problem";
import type { Server } from "./server";

/** What can be told without the server. */
export type Checks = (doc: Doc) => readonly Problem[];

const pause = 400;

/** Looks for problems whenever the definition has changed: at once what is plain to see, then what the server says. */
export function watchProblems(editor: Editor, server: Server, checks: Checks = () => []): () => void {
	let seen: Doc | undefined;
	let timer: ReturnType<typeof setTimeout> | undefined;
	let call: AbortController | undefined;
	let remote: readonly Problem[] = [];

	const publish = (doc: Doc) => {
		const left = remote.filter((problem) => problem.node === null || editor.has(problem.node));
		editor.set({ problems: together(checks(doc), left) });
	};
	const ask = async (doc: Doc) => {
		call = new AbortController();
		const { signal } = call;
		editor.set({ checking: true });
		try {
			remote = (await server.validate(editor.id, doc, signal)).map((found) => problemOf(doc, found));
		} catch (thrown) {
			// A definition that cannot even be read is refused, with the fields that are to blame.
			const error = toApiError(thrown);
			if (error.status === 400) remote = error.fields.map((field) => problemOf(doc, field));
		}
		if (signal.aborted) return;
		editor.set({ checking: false });
		publish(editor.doc);
	};
	const look = () => {
		const { doc } = editor;
		if (doc === seen) return;
		const same = seen && seen.steps === doc.steps && seen.triggers === doc.triggers && seen.settings === doc.settings;
		seen = doc;
		if (same) return;
		call?.abort();
		clearTimeout(timer);
		publish(doc);
		if (editor.get().mayWrite) timer = setTimeout(() => void ask(doc), pause);
	};
	look();
	const stop = editor.watch(look);
	return () => {
		stop();
		call?.abort();
		clearTimeout(timer);
	};
}
