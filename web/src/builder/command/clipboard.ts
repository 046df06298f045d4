import { copy, paste, pastePlace } from "@/builder/model";
import type { Editor } from "@/builder/state/editor";
import { clipText, readClip } from "@/builder/text/clip";
import { removeSelected, selectedSteps } from "./edit";

/** Whether keys belong to a text just now, or a text is marked that a copy would mean. */
function elsewhere(target: EventTarget | null): boolean {
	const inText =
		target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
	return inText || document.querySelector('[role="dialog"]') !== null;
}

/** Copies the selected steps by a click; keys go through the events below. */
export async function copySelected(editor: Editor): Promise<void> {
	try {
		await navigator.clipboard.writeText(clipText(copy(editor.doc, selectedSteps(editor))));
		editor.say("Copied.");
	} catch {
		editor.refuse("The browser does not allow to copy here. Use the keys instead.");
	}
}

/** Steps on the clipboard are YAML text: they can be pasted into any text, and any text with steps here. */
export function watchClipboard(editor: Editor): () => void {
	const onCopy = (event: ClipboardEvent) => {
		const ids = selectedSteps(editor);
		const marked = (getSelection()?.toString() ?? "") !== "";
		if (ids.length === 0 || marked || elsewhere(event.target)) return;
		event.clipboardData?.setData("text/plain", clipText(copy(editor.doc, ids)));
		event.preventDefault();
		editor.say(`Copied ${ids.length === 1 ? "1 step" : `${ids.length} steps`}.`);
		if (event.type === "cut") removeSelected(editor);
	};
	const onPaste = (event: ClipboardEvent) => {
		if (elsewhere(event.target)) return;
		const text = event.clipboardData?.getData("text/plain") ?? "";
		if (text.trim() === "") return;
		event.preventDefault();
		const clip = readClip(text);
		if (!clip) editor.refuse("The clipboard holds no steps.");
		else editor.apply((doc) => paste(doc, clip, pastePlace(doc, editor.get().selected)), { say: "Pasted." });
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
