import { startHistory } from "@/shared/workflow/model";
import { parse } from "@/shared/workflow/text/content";
import type { Drafts } from "./draft";
import type { Tagged } from "./server";
import { aboutOf, same, snapshotOf } from "./snapshot";
import type { State } from "./state";

function brokenBy(text: string | undefined): State["broken"] {
	if (text === undefined) return null;
	const read = parse(text);
	return "errors" in read ? { text, errors: read.errors } : null;
}

/** initialState returns the state of a loaded workflow, including unsaved edits stored in the browser. */
export function initialState(loaded: Tagged, drafts: Drafts, mayWrite: boolean): State {
	const stored = snapshotOf(loaded.data);
	const draft = mayWrite ? drafts.read(loaded.data.id) : null;
	const broken = brokenBy(draft?.typed);
	const restored = draft !== null && (broken !== null || !same(draft.snapshot, stored));
	return {
		about: aboutOf(loaded.data),
		// Edits based on an older version are saved against its ETag, so that newer changes are not overwritten unnoticed.
		etag: restored ? draft.etag : loaded.etag,
		history: startHistory(restored ? draft.snapshot : stored),
		stored,
		dirty: restored,
		restored: restored ? draft.at : null,
		selected: [],
		edge: null,
		broken,
		problems: [],
		warnings: [],
		checking: false,
		saving: false,
		saveError: null,
		conflict: null,
		mayWrite,
		target: null,
		spot: null,
		adding: null,
		question: null,
		view: "canvas",
		side: "settings",
		details: false,
		testing: false,
		said: "",
	};
}
