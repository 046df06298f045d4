import { type RefObject, useEffect, useRef } from "react";

const controls = "input, textarea, select, .cm-content, button";

/** Finds the control at a pointer, or else that of the nearest enclosing field. */
export function controlAt(root: HTMLElement, pointer: string): HTMLElement | null {
	for (let at = pointer; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
		const field = root.querySelector(`[data-pointer="${CSS.escape(at)}"]`);
		const control = [...(field?.querySelectorAll<HTMLElement>(controls) ?? [])].find(isInput);
		if (control) return control;
	}
	return null;
}

/** Skips the buttons next to a label, which come before the control. */
function isInput(element: HTMLElement): boolean {
	return element.tagName !== "BUTTON" || element.getAttribute("role") === "switch";
}

/**
 * useFieldFocus focuses a field on request. It waits for the field's schema and editor,
 * which are loaded on first use, unless the user clicks or moves the focus elsewhere.
 */
export function useFieldFocus(root: RefObject<HTMLElement | null>, pointer: string | null, count: number): void {
	// Each request is handled once, because typing changes which field is the first empty one.
	const done = useRef(0);
	useEffect(() => {
		const host = root.current;
		if (!host || pointer === null || count === done.current) return undefined;
		const before = document.activeElement;
		const observer = new MutationObserver(() => reach());
		const finish = () => {
			observer.disconnect();
			done.current = count;
		};
		const reach = () => {
			// A closing dialog returns the focus to the canvas; that does not count as a choice by the user.
			const away = document.activeElement !== before && host.contains(document.activeElement);
			const control = away ? null : controlAt(host, pointer);
			if (!away && !control) return;
			finish();
			if (!control) return;
			control.focus();
			control.scrollIntoView({ block: "nearest" });
		};
		observer.observe(host, { childList: true, subtree: true });
		addEventListener("pointerdown", finish, true);
		reach();
		return () => {
			removeEventListener("pointerdown", finish, true);
			observer.disconnect();
		};
	}, [root, pointer, count]);
}
