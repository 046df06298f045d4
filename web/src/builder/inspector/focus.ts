import { type RefObject, useEffect, useRef } from "react";

const controls = "input, textarea, select, .cm-content, button";

/** Finds the control of a pointer: that of the field itself, else of the nearest field around it. */
export function controlAt(root: HTMLElement, pointer: string): HTMLElement | null {
	for (let at = pointer; at !== ""; at = at.slice(0, at.lastIndexOf("/"))) {
		const field = root.querySelector(`[data-pointer="${CSS.escape(at)}"]`);
		const control = [...(field?.querySelectorAll<HTMLElement>(controls) ?? [])].find(isInput);
		if (control) return control;
	}
	return null;
}

/** The buttons beside a label come before the control: they are not meant. */
function isInput(element: HTMLElement): boolean {
	return element.tagName !== "BUTTON" || element.getAttribute("role") === "switch";
}

/** How long a field may take to appear: its schema and its editor are loaded when they are first needed. */
const patience = 3000;

/**
 * useFieldFocus brings the focus to a field when it is asked for. The form may
 * still be loading then: the field is waited for, unless the person goes elsewhere.
 */
export function useFieldFocus(root: RefObject<HTMLElement | null>, pointer: string | null, count: number): void {
	// What was asked for is done once: the first empty field is another as soon as something is typed.
	const done = useRef(0);
	useEffect(() => {
		const host = root.current;
		if (!host || pointer === null || count === done.current) return undefined;
		const before = document.activeElement;
		const observer = new MutationObserver(() => reach());
		const timer = setTimeout(() => observer.disconnect(), patience);
		const reach = () => {
			// A dialog that closes gives the focus back to the canvas: that is nobody's choice.
			const away = document.activeElement !== before && host.contains(document.activeElement);
			const control = away ? null : controlAt(host, pointer);
			if (!away && !control) return;
			observer.disconnect();
			done.current = count;
			if (!control) return;
			control.focus();
			control.scrollIntoView({ block: "nearest" });
		};
		observer.observe(host, { childList: true, subtree: true });
		reach();
		return () => {
			clearTimeout(timer);
			observer.disconnect();
		};
	}, [root, pointer, count]);
}
