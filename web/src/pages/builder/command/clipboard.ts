import type { Editor } from "@/pages/builder/state/editor";
import { copy, paste, pastePlace } from "@/shared/workflow/model";
import { clipText, readClip } from "@/shared/workflow/text/clip";
import { removeSelected, selectedSteps } from "./edit";

/** Whether a text field or a dialog handles the clipboard event. */
function isHandledElsewhere(target: EventTarget | null): boolean {
	const inText =
		target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
	return inText || document.querySelector('[role="dialog"]') !== null;
}

/** Copies the selected steps on click; keyboard shortcuts use the events below. */
export async function copySelected(editor: Editor): Promise<void> {
	try {
		await navigator.clipboard.writeText(clipText(copy(editor.doc, selectedSteps(editor))));
		editor.announce("Copied.");
	} catch {
		editor.reject("The browser blocked copying. Use the keyboard shortcut instead.");
	}
}

/** Steps are copied as YAML, so they can be pasted into any text, and any YAML with steps can be pasted here. */
export function watchClipboard(editor: Editor): () => void {
	const onCopy = (event: ClipboardEvent) => {
		const ids = selectedSteps(editor);
		const marked = (getSelection()?.toString() ?? "") !== "";
		if (ids.length === 0 || marked || isHandledElsewhere(event.target)) return;
		event.clipboardData?.setData("text/plain", clipText(copy(editor.doc, ids)));
		event.preventDefault();
		editor.announce(`Copied ${ids.length === 1 ? "1 step" : `${ids.length} steps`}.`);
		if (event.type === "cut") removeSelected(editor);
	};
	const onPaste = (event: ClipboardEvent) => {
		if (isHandledElsewhere(event.target)) return;
		const text = event.clipboardData?.getData("text/plain") ?? "";
		if (text.trim() === "") return;
		event.preventDefault();
		const clip = readClip(text);
		if (!clip) editor.reject("The clipboard contains no steps.");
		else editor.apply((doc) => paste(doc, clip, pastePlace(doc, editor.get().selected)), { announce: "Pasted." });
	};
	addEventListener("copy", onCopy);
	addEventListener("cut", onCopy);
	addEventListener("paste", onPaste);
	return () => {
		removeEventListener("copy", onCopy);
		removeEventListener("cut", onCopy);
		removeEventListener("paste", onPaste);
	};
}
