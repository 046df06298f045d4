import {
	begin,
	changeAt,
	type Doc,
	type Edit,
	type Json,
	nodeAt,
	nodePointer,
	type Problem,
	record,
	redo,
	rename,
	renameTrigger,
	undo,
} from "@/builder/model";
import { parse } from "@/builder/text/content";
import { Checking } from "./check";
import { type Drafts, drafts as local } from "./draft";
import { Saving } from "./saving";
import { server as remote, type Server, type Tagged } from "./server";
import { aboutOf, type Snapshot, same, snapshotOf } from "./snapshot";
import type { Adding, Question, Side, State, View } from "./state";
import { Store } from "./store";
import { textOf, withText } from "./text";

export interface Options {
	readonly mayWrite?: boolean;
	readonly server?: Server;
	readonly drafts?: Drafts;
	/** Shows a sentence about something that was not done. */
	readonly tell?: (sentence: string) => void;
}

/** The open document of one workflow: it never writes to another. */
export class Editor extends Store<State> {
	readonly id: string;
	readonly saving: Saving;
	readonly checking: Checking;
	private readonly tell: (sentence: string) => void;
	private readonly drafts: Drafts;

	constructor(loaded: Tagged, options: Options = {}) {
		const drafts = options.drafts ?? local;
		super(opened(loaded, drafts, options.mayWrite ?? true));
		this.id = loaded.data.id;
		this.drafts = drafts;
		this.tell = options.tell ?? (() => {});
		const server = options.server ?? remote;
		this.saving = new Saving(this, server, drafts);
		this.checking = new Checking(this, server);
	}

	get present(): Snapshot {
		return this.get().history.present;
	}

	get doc(): Doc {
		return this.present.doc;
	}

	has(node: string): boolean {
		return nodePointer(this.doc, node) !== undefined;
	}

	/** Whether the document cannot be edited by operations just now. */
	get fixed(): boolean {
		return this.get().broken !== null || !this.get().mayWrite;
	}

	/**
	 * Does an operation of the model. A refusal is told and changes nothing.
	 * Changes of the same group within half a second are one step of undo.
	 */
	apply(
		operation: (doc: Doc) => Edit,
		{ group = null, say, keep }: { group?: string | null; say?: string; keep?: boolean } = {},
	): Edit {
		const edit = this.fixed ? { doc: this.doc, select: [], refused: this.whyFixed() } : operation(this.doc);
		if (edit.refused) {
			this.refuse(edit.refused);
			return edit;
		}
		this.record({ ...this.present, doc: edit.doc }, group);
		if (!keep) this.set({ selected: edit.select, edge: null });
		if (say) this.say(say);
		return edit;
	}

	/** Changes the field at a pointer from the top of the document; undefined removes it. Typing is one step of undo. */
	setField(pointer: string, value: Json | undefined): Edit {
		const node = /^\/(?:steps|triggers)\/.*\/id$/.test(pointer) ? nodeAt(this.doc, pointer) : undefined;
		if (node && typeof value === "string" && nodePointer(this.doc, node) === pointer.slice(0, -3)) {
			return this.renameNode(node, value);
		}
		return this.apply((doc) => changeAt(doc, pointer, value), { group: pointer, keep: true });
	}

	renameNode(node: string, id: string): Edit {
		return this.apply((doc) => (node.startsWith("@") ? renameTrigger(doc, node.slice(1), id) : rename(doc, node, id)));
	}

	setName(name: string): void {
		if (!this.fixed) this.record({ ...this.present, name }, "name");
	}

	setDescription(description: string | null): void {
		if (!this.fixed) this.record({ ...this.present, description }, "description");
	}

	/** The text as it is shown: what was typed, also while it says no workflow. */
	text(): string {
		return this.get().broken?.text ?? textOf(this.present);
	}

	/** Takes typed text over. While it says no workflow the document stays as it was. */
	setText(text: string): void {
		if (!this.get().mayWrite || text === this.text()) return;
		const read = parse(text);
		if ("errors" in read) {
			this.set({ broken: { text, errors: read.errors } });
			this.keep();
			return;
		}
		this.set({ broken: null });
		this.record(withText(this.present, text, read.content), "text");
		this.prune();
	}

	/** Goes back to the last text that said a workflow. */
	dropBroken(): void {
		this.set({ broken: null });
		this.keep();
	}

	undo(): void {
		this.travel(undo(this.get().history), "Undone.");
	}

	redo(): void {
		this.travel(redo(this.get().history), "Redone.");
	}

	select(nodes: readonly string[]): void {
		const { selected, edge } = this.get();
		if (edge === null && selected.length === nodes.length && selected.every((node, i) => node === nodes[i])) return;
		this.set({ selected: nodes, edge: null });
	}

	selectEdge(edge: string | null): void {
		this.set({ edge, selected: [] });
	}

	/** Selects the node of a field and asks for the focus to go there; null for its first empty required field. */
	reveal(node: string | null, field: string | null): void {
		const count = (this.get().target?.count ?? 0) + 1;
		this.set({ selected: node === null ? [] : [node], edge: null, side: "settings", target: { node, field, count } });
	}

	revealProblem(problem: Problem): void {
		const start = problem.node === undefined ? undefined : nodePointer(this.doc, problem.node);
		if (problem.node === undefined) this.reveal(null, problem.pointer);
		else if (start !== undefined) this.reveal(problem.node, problem.pointer.slice(start.length));
	}

	/** Opens the picker, or closes it. */
	add(adding: Adding | null): void {
		if (adding === null || !this.fixed) this.set({ adding });
		else this.refuse(this.whyFixed());
	}

	ask(question: Question | null): void {
		if (question === null || question.kind === "find" || !this.fixed) this.set({ question });
		else this.refuse(this.whyFixed());
	}

	show(view: View): void {
		this.set({ view });
	}

	open(side: Side): void {
		this.set({ side });
	}

	test(open: boolean): void {
		this.set({ testing: open });
	}

	/** Tells why something was not done. */
	refuse(why: string): void {
		this.tell(why);
		this.say(why);
	}

	say(sentence: string): void {
		// The same sentence twice is said twice: a blank makes it another.
		this.set({ said: this.get().said === sentence ? `${sentence}\u00a0` : sentence });
	}

	/** Replaces the document by what the server has now. */
	adopt(loaded: Tagged): void {
		const stored = snapshotOf(loaded.data);
		this.drafts.drop(this.id);
		this.set({
			about: aboutOf(loaded.data),
			etag: loaded.etag,
			stored,
			history: record(this.get().history, stored, Date.now()),
			broken: null,
			conflict: null,
			saveError: null,
			restored: null,
			dirty: false,
		});
		this.prune();
	}

	/** Throws the edits away that were not saved. */
	discard(): void {
		const { history, stored } = this.get();
		this.drafts.drop(this.id);
		this.set({ history: record(history, stored, Date.now()), broken: null, restored: null, dirty: false });
		this.prune();
	}

	/** Keeps the present for a reload, and says whether there is something to save. */
	keep(): void {
		const { stored, etag, history, broken } = this.get();
		const dirty = broken !== null || !same(history.present, stored);
		this.set({ dirty });
		if (!dirty) this.drafts.drop(this.id);
		else this.drafts.write(this.id, { snapshot: history.present, typed: broken?.text, etag, at: Date.now() });
	}

	private record(next: Snapshot, group: string | null): void {
		const { history } = this.get();
		if (same(next, history.present)) return;
		this.set({ history: record(history, next, Date.now(), group), saveError: null });
		this.keep();
	}

	private travel(history: State["history"], say: string): void {
		if (this.fixed || history === this.get().history) return;
		this.set({ history, saveError: null });
		this.keep();
		this.prune();
		this.say(say);
	}

	/** Takes nodes out of the selection that are gone. */
	private prune(): void {
		const { selected } = this.get();
		const left = selected.filter((node) => this.has(node));
		if (left.length < selected.length) this.set({ selected: left });
	}

	private whyFixed(): string {
		return this.get().mayWrite
			? "The text has a mistake. Correct it, or undo it there, to go on here."
			: "Your role may look at workflows but not change them.";
	}
}

function brokenBy(text: string | undefined): State["broken"] {
	if (text === undefined) return null;
	const read = parse(text);
	return "errors" in read ? { text, errors: read.errors } : null;
}

function opened(loaded: Tagged, drafts: Drafts, mayWrite: boolean): State {
	const stored = snapshotOf(loaded.data);
	const draft = mayWrite ? drafts.read(loaded.data.id) : null;
	const broken = brokenBy(draft?.typed);
	const restored = draft !== null && (broken !== null || !same(draft.snapshot, stored));
	return {
		about: aboutOf(loaded.data),
		// Edits made on an older state are saved against that: somebody else's are not overwritten unseen.
		etag: restored ? draft.etag : loaded.etag,
		history: begin(restored ? draft.snapshot : stored),
		stored,
		dirty: restored,
		restored: restored ? draft.at : null,
		selected: [],
		edge: null,
		broken,
		problems: [],
		checking: false,
		saving: false,
		saveError: null,
		conflict: null,
		mayWrite,
		target: null,
		adding: null,
		question: null,
		view: "canvas",
		side: "settings",
		testing: false,
		said: "",
	};
}
