import { useLayoutEffect, useRef } from "react";
import { create } from "zustand";

export interface Shortcut {
	/** Such as "Mod+K", "?" or "G W" (a sequence). */
	keys: string;
	/** Shown in the list of shortcuts. */
	description: string;
	group: string;
	run: () => void;
	/** Whether the shortcut applies where the key was pressed; everywhere if omitted. */
	when?: (target: EventTarget | null) => boolean;
}

const apple = /Mac|iP(hone|ad)/.test(globalThis.navigator?.platform ?? "");
const useRegistry = create<{ shortcuts: readonly Shortcut[] }>(() => ({ shortcuts: [] }));
/** The first key of a sequence, and until when the second one may be pressed, in event time. */
let pending = { key: "", until: 0 };

function change(next: (shortcuts: readonly Shortcut[]) => readonly Shortcut[]): void {
	useRegistry.setState(({ shortcuts }) => ({ shortcuts: next(shortcuts) }));
}

/** keyLabels returns the keys as they are labeled on this platform. */
export function keyLabels(keys: string): string[] {
	return keys.split(/[+ ]/).map((key) => (key === "Mod" ? (apple ? "⌘" : "Ctrl") : key));
}

/** keyName returns the name of the pressed key, in the notation of shortcuts. */
export function keyName(event: Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey">): string {
	const mod = apple ? event.metaKey : event.ctrlKey;
	const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
	const letter = /^[A-Z]$/.test(key) || key.length > 1;
	return [mod && "Mod", event.altKey && "Alt", event.shiftKey && letter && "Shift", key].filter(Boolean).join("+");
}

/** isTyping reports whether key presses go to a text field. */
export function isTyping(target: EventTarget | null): boolean {
	return (
		target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
	);
}

export function handleKeyDown(event: KeyboardEvent): void {
	if (event.defaultPrevented || event.isComposing) return;
	const name = keyName(event);
	// A locked dialog shows something that would be lost with it.
	if (document.querySelector("[data-locked]")) return;
	const free = !isTyping(event.target) && !document.querySelector('[role="dialog"]');
	if (!free && !name.startsWith("Mod+")) return;
	const pair = pending.until > event.timeStamp ? `${pending.key} ${name}` : "";
	pending = { key: "", until: 0 };
	// The latest registration wins, so that a page can override a key.
	const { shortcuts } = useRegistry.getState();
	const meant = shortcuts.filter((one) => !one.when || one.when(event.target));
	const found = meant.findLast((one) => one.keys === pair) ?? meant.findLast((one) => one.keys === name);
	if (found) {
		event.preventDefault();
		found.run();
	} else if (shortcuts.some((one) => one.keys.startsWith(`${name} `))) {
		pending = { key: name, until: event.timeStamp + 1_200 };
	}
}

/**
 * useShortcut registers a shortcut while the component is mounted, and lists it under "?".
 * Layout effects: the shortcut works as soon as the component is on the screen.
 */
export function useShortcut(
	keys: string,
	description: string,
	run: () => void,
	group = "This page",
	when?: Shortcut["when"],
): void {
	const latest = useRef(run);
	useLayoutEffect(() => {
		latest.current = run;
	});
	useLayoutEffect(() => {
		const own: Shortcut = { keys, description: description, group, run: () => latest.current(), when };
		change((shortcuts) => [...shortcuts, own]);
		return () => change((shortcuts) => shortcuts.filter((other) => other !== own));
	}, [keys, description, group, when]);
}

export function useShortcuts(): readonly Shortcut[] {
	return useRegistry((state) => state.shortcuts);
}
