import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Shortcut {
	/** Such as "Mod+K", "?", "G W" (one after the other). */
	keys: string;
	/** As the list of shortcuts names it. */
	does: string;
	group: string;
	run: () => void;
	/** Whether the key means this where it was pressed; everywhere unless given. */
	when?: (target: EventTarget | null) => boolean;
}

const apple = /Mac|iP(hone|ad)/.test(globalThis.navigator?.platform ?? "");
let shortcuts: readonly Shortcut[] = [];
const watchers = new Set<() => void>();
/** The first key of a pair, and until when its second is waited for. */
let pending = { key: "", until: 0 };

function change(next: readonly Shortcut[]): void {
	shortcuts = next;
	for (const tell of watchers) tell();
}

/** keysOf writes keys as this machine's keyboard names them. */
export function keysOf(keys: string): string[] {
	return keys.split(/[+ ]/).map((key) => (key === "Mod" ? (apple ? "⌘" : "Ctrl") : key));
}

/** pressed is the name of what was pressed, as shortcuts are written. */
export function pressed(event: Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey">): string {
	const mod = apple ? event.metaKey : event.ctrlKey;
	const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
	const letter = /^[A-Z]$/.test(key) || key.length > 1;
	return [mod && "Mod", event.altKey && "Alt", event.shiftKey && letter && "Shift", key].filter(Boolean).join("+");
}

/** typing tells whether keys belong to a text just now. */
export function typing(target: EventTarget | null): boolean {
	return (
		target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
	);
}

export function press(event: KeyboardEvent): void {
	if (event.defaultPrevented || event.isComposing) return;
	const name = pressed(event);
	const free = !typing(event.target) && !document.querySelector('[role="dialog"]');
	if (!free && !name.startsWith("Mod+")) return;
	const pair = pending.until > Date.now() ? `${pending.key} ${name}` : "";
	pending = { key: "", until: 0 };
	// The latest comes first: a page may take a key over.
	const meant = shortcuts.filter((one) => !one.when || one.when(event.target));
	const found = meant.findLast((one) => one.keys === pair) ?? meant.findLast((one) => one.keys === name);
	if (found) {
		event.preventDefault();
		found.run();
	} else if (shortcuts.some((one) => one.keys.startsWith(`${name} `))) {
		pending = { key: name, until: Date.now() + 1_200 };
	}
}

/** useShortcut makes a key do something while the component is there, and lists it under "?". */
export function useShortcut(
	keys: string,
	does: string,
	run: () => void,
	group = "This page",
	when?: Shortcut["when"],
): void {
	const latest = useRef(run);
	useEffect(() => {
		latest.current = run;
	});
	useEffect(() => {
		const own: Shortcut = { keys, does, group, run: () => latest.current(), when };
		change([...shortcuts, own]);
		return () => change(shortcuts.filter((other) => other !== own));
	}, [keys, does, group, when]);
}

export function useShortcuts(): readonly Shortcut[] {
	return useSyncExternalStore(
		(tell) => {
			watchers.add(tell);
			return () => watchers.delete(tell);
		},
		() => shortcuts,
	);
}
