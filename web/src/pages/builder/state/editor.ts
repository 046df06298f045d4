import { createStore, type StoreApi } from "zustand/vanilla";
import {
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
} from "@/shared/workflow/model";
import { parse } from "@/shared/workflow/text/content";
import { Checking } from "./check";
import { type PresentNames, renamedConnections } from "./connection-names";
import { type Drafts, drafts as local } from "./draft";
import { initialState } from "./initial-state";
import type { OpenDocument } from "./open-document";
import { Saving } from "./saving";
import { server as remote, type Server, type Tagged } from "./server";
import { aboutOf, type Snapshot, same, snapshotOf } from "./snapshot";
import type { Adding, Question, Side, State, View } from "./state";
import { textOf, withEdit, withText } from "./text";

export interface Options {
	readonly mayWrite?: boolean;
	readonly server?: Server;
	readonly drafts?: Drafts;
	/** Shows why an edit was rejected. */
	readonly onRejected?: (sentence: string) => void;
}

/** The open document of one workflow. It never writes to another one. */
export class Editor implements OpenDocument {
	readonly id: string;
	readonly store: StoreApi<State>;
	readonly saving: Saving;
	readonly checking: Checking;
	private readonly onRejected: (sentence: string) => void;
	private readonly drafts: Drafts;
	private connectionNames: PresentNames = new Map();

	constructor(loaded: Tagged, options: Options = {}) {
		const drafts = options.drafts ?? local;
		this.store = createStore(() => initialState(loaded, drafts, options.mayWrite ?? true));
		this.id = loaded.data.id;
		this.drafts = drafts;
		this.onRejected = options.onRejected ?? (() => {});
		const server = options.server ?? remote;
		this.checking = new Checking(this, server);
		this.saving = new Saving(this, server, drafts, this.checking);
	}

	get(): State {
		return this.store.getState();
	}

	set(change: Partial<State>): void {
		this.store.setState(change);
	}

	watch(tell: () => void): () => void {
		return this.store.subscribe(tell);
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

	/** Whether the document currently cannot be edited by operations. */
	get readOnly(): boolean {
		return this.get().broken !== null || !this.get().mayWrite;
	}

	/**
	 * Applies an operation of the model. A rejected one changes nothing. Changes of the same
	 * group within half a second form one undo step.
	 */
	apply(
		operation: (doc: Doc) => Edit,
		{
			group = null,
			announce,
			keepSelection,
		}: { group?: string | null; announce?: string; keepSelection?: boolean } = {},
	): Edit {
		const edit = this.readOnly ? { doc: this.doc, select: [], rejected: this.readOnlyReason() } : operation(this.doc);
		if (edit.rejected) {
			this.reject(edit.rejected);
			return edit;
		}
		this.record(withEdit(this.present, edit), group);
		if (!keepSelection) this.set({ selected: edit.select, edge: null });
		if (announce) this.announce(announce);
		return edit;
	}

	/** Changes the field at a pointer; undefined removes it. Continuous typing forms one undo step. */
	setField(pointer: string, value: Json | undefined): Edit {
		const node = /^\/(?:steps|triggers)\/.*\/id$/.test(pointer) ? nodeAt(this.doc, pointer) : undefined;
		if (node && typeof value === "string" && nodePointer(this.doc, node) === pointer.slice(0, -3)) {
			return this.renameNode(node, value);
		}
		return this.apply((doc) => changeAt(doc, pointer, value), { group: pointer, keepSelection: true });
	}

	/** Sets the present names of connections that were renamed. The next save writes them. */
	setConnectionNames(names: PresentNames): void {
		this.connectionNames = names;
	}

	renameConnections(): void {
		for (const { pointer, name } of renamedConnections(this.doc, this.connectionNames)) this.setField(pointer, name);
	}

	renameNode(node: string, id: string): Edit {
		return this.apply((doc) => (node.startsWith("@") ? renameTrigger(doc, node.slice(1), id) : rename(doc, node, id)));
	}

	setName(name: string): void {
		if (!this.readOnly) this.record({ ...this.present, name }, "name");
	}

	setDescription(description: string | null): void {
		if (!this.readOnly) this.record({ ...this.present, description }, "description");
	}

	/** The text as shown, including text that is not a valid workflow. */
	text(): string {
		return this.get().broken?.text ?? textOf(this.present);
	}

	/** Applies typed text. While it is not a valid workflow, the document does not change. */
	setText(text: string): void {
		if (!this.get().mayWrite || text === this.text()) return;
		const read = parse(text);
		if ("errors" in read) {
			this.set({ broken: { text, errors: read.errors } });
			this.saveDraft();
			return;
		}
		this.set({ broken: null });
		this.record(withText(this.present, text, read.content), "text");
		this.prune();
	}

	/** Returns to the last valid text. */
	dropBroken(): void {
		this.set({ broken: null });
		this.saveDraft();
	}

	undo(): void {
		this.jumpTo(undo(this.get().history), "Undone.");
	}

	redo(): void {
		this.jumpTo(redo(this.get().history), "Redone.");
	}

	select(nodes: readonly string[]): void {
		const { selected, edge } = this.get();
		if (edge === null && selected.length === nodes.length && selected.every((node, i) => node === nodes[i])) return;
		this.set({ selected: nodes, edge: null });
	}

	selectEdge(edge: string | null): void {
		this.set({ edge, selected: [] });
	}

	/** Selects a node and requests the focus for one of its fields; null means its first empty required field. */
	reveal(node: string | null, field: string | null): void {
		const count = (this.get().target?.count ?? 0) + 1;
		const target = { node, field, count };
		this.set({ selected: node === null ? [] : [node], edge: null, side: "settings", target, details: true });
	}

	/** Shows the text with the cursor at an offset. */
	revealText(offset: number): void {
		this.set({ view: "yaml", spot: offset, details: false });
	}

	revealProblem(problem: Problem): void {
		const start = problem.node === undefined ? undefined : nodePointer(this.doc, problem.node);
		if (problem.node === undefined) this.reveal(null, problem.pointer);
		else if (start !== undefined) this.reveal(problem.node, problem.pointer.slice(start.length));
	}

	/** Opens or closes the picker. */
	add(adding: Adding | null): void {
		if (adding === null || !this.readOnly) this.set({ adding });
		else this.reject(this.readOnlyReason());
	}

	ask(question: Question | null): void {
		if (question === null || question.kind === "find" || !this.readOnly) this.set({ question });
		else this.reject(this.readOnlyReason());
	}

	show(view: View): void {
		this.set({ view });
	}

	open(side: Side): void {
		this.set({ side, details: true });
	}

	/** Shows the settings of the selection, even where the panel is hidden by default. */
	showDetails(): void {
		this.set({ details: true });
	}

	hideDetails(): void {
		this.set({ details: false, side: "settings" });
	}

	test(open: boolean): void {
		this.set({ testing: open });
	}

	/** Reports why an edit was rejected. */
	reject(why: string): void {
		this.onRejected(why);
		this.announce(why);
	}

	announce(sentence: string): void {
		// Screen readers ignore a repeated text, so a space makes it different.
		this.set({ said: this.get().said === sentence ? `${sentence}\u00a0` : sentence });
	}

	/** Replaces the document with the server's current one. */
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

	/** Discards unsaved edits. */
	discard(): void {
		const { history, stored } = this.get();
		this.drafts.drop(this.id);
		this.set({ history: record(history, stored, Date.now()), broken: null, restored: null, dirty: false });
		this.prune();
	}

	/** Stores the document for a reload, and updates the dirty flag. */
	saveDraft(): void {
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
		this.saveDraft();
	}

	private jumpTo(history: State["history"], announce: string): void {
		if (this.readOnly || history === this.get().history) return;
		this.set({ history, saveError: null });
		this.saveDraft();
		this.prune();
		this.announce(announce);
	}

	/** Deselects nodes that no longer exist. */
	private prune(): void {
		const { selected } = this.get();
		const left = selected.filter((node) => this.has(node));
		if (left.length < selected.length) this.set({ selected: left });
	}

	private readOnlyReason(): string {
		return this.get().mayWrite
			? "The YAML has an error. Fix it or undo it there first."
			: "Your role can view workflows but not change them.";
	}
}
