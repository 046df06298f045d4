import { useEffect } from "react";
import { create } from "zustand";
import { type ApiError, toApiError } from "@/api/error";
import { IconButton } from "./button";
import { CheckIcon, CloseIcon, WarningIcon } from "./icons";
import { sentence } from "./sentence";

interface ToastData {
	id: number;
	tone: "good" | "bad";
	text: string;
	requestId?: string;
}

const useToasts = create<{ toasts: ToastData[] }>(() => ({ toasts: [] }));
let last = 0;

function change(next: (toasts: ToastData[]) => ToastData[]): void {
	useToasts.setState(({ toasts }) => ({ toasts: next(toasts) }));
}

function add(note: Omit<ToastData, "id">): void {
	last += 1;
	const id = last;
	change((toasts) => [...toasts, { ...note, id }].slice(-3));
}

/** toast reports what has just happened. Anything that requires action belongs on the page instead. */
export const toast = {
	done: (text: string) => add({ tone: "good", text }),
	error: (error: ApiError | Error | unknown) => {
		const { message, requestId } = toApiError(error);
		add({ tone: "bad", text: sentence(message), requestId });
	},
	/** Removes all toasts. */
	clear: () => change(() => []),
};

export function Toasts() {
	const shown = useToasts((state) => state.toasts);
	return (
		<section
			aria-label="Notifications"
			className="pointer-events-none fixed right-4 bottom-4 left-4 z-50 flex flex-col items-end gap-2"
		>
			{/* Both regions are always rendered, because screen readers only announce changes in regions they know. */}
			<div role="status" className="contents">
				{shown.map((note) => note.tone === "good" && <Toast key={note.id} note={note} />)}
			</div>
			<div role="alert" className="contents">
				{shown.map((note) => note.tone === "bad" && <Toast key={note.id} note={note} />)}
			</div>
		</section>
	);
}

function Toast({ note }: { note: ToastData }) {
	const close = () => change((toasts) => toasts.filter((other) => other.id !== note.id));
	useEffect(() => {
		const timer = setTimeout(
			() => change((toasts) => toasts.filter((other) => other.id !== note.id)),
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
