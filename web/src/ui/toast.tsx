import { useEffect, useSyncExternalStore } from "react";
import { type ApiError, toApiError } from "@/api/error";
import { IconButton } from "./button";
import { CheckIcon, CloseIcon, WarningIcon } from "./icons";
import { sentence } from "./sentence";

interface Note {
	id: number;
	tone: "good" | "bad";
	text: string;
	requestId?: string;
}

let notes: Note[] = [];
let last = 0;
const watchers = new Set<() => void>();

function change(next: Note[]): void {
	notes = next;
	for (const tell of watchers) tell();
}

function add(note: Omit<Note, "id">): void {
	last += 1;
	change([...notes, { ...note, id: last }].slice(-3));
}

/** toast says what has just happened. What a person must act on belongs on the page instead. */
export const toast = {
	done: (text: string) => add({ tone: "good", text }),
	error: (error: ApiError | Error | unknown) => {
		const { message, requestId } = toApiError(error);
		add({ tone: "bad", text: sentence(message), requestId });
	},
};

export function Toasts() {
	const shown = useSyncExternalStore(
		(tell) => {
			watchers.add(tell);
			return () => watchers.delete(tell);
		},
		() => notes,
	);
	return (
		<section
			aria-label="Messages"
			className="pointer-events-none fixed right-4 bottom-4 left-4 z-50 flex flex-col items-end gap-2"
		>
			{/* Both regions are always there: a screen reader hears only what changes in one it knows. */}
			<div role="status" className="contents">
				{shown.map((note) => note.tone === "good" && <Toast key={note.id} note={note} />)}
			</div>
			<div role="alert" className="contents">
				{shown.map((note) => note.tone === "bad" && <Toast key={note.id} note={note} />)}
			</div>
		</section>
	);
}

function Toast({ note }: { note: Note }) {
	const close = () => change(notes.filter((other) => other.id !== note.id));
	useEffect(() => {
		const timer = setTimeout(
			() => change(notes.filter((other) => other.id !== note.id)),
			note.tone === "good" ? 4_000 : 12_000,
		);
		return () => clearTimeout(timer);
	}, [note]);
	return (
		<div className="pointer-events-auto flex w-96 max-w-full animate-appear items-start gap-3 rounded-8 border bg-surface py-2 pr-2 pl-3 shadow-lift">
			<span className={note.tone === "good" ? "mt-1.5 text-succeeded" : "mt-1.5 text-failed"}>
				{note.tone === "good" ? <CheckIcon /> : <WarningIcon />}
			</span>
			<div className="min-w-0 flex-1 py-1 break-words">
				{note.text}
				{note.requestId && <div className="font-mono text-12 text-muted">{note.requestId}</div>}
			</div>
			<IconButton icon={CloseIcon} label="Dismiss" small onClick={close} />
		</div>
	);
}
