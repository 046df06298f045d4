import { connectable } from "@/pages/builder/command/candidates";
import { useReplay } from "@/pages/builder/replay/replay";
import { useEditor } from "@/pages/builder/state";
import { isTyping, useShortcut } from "@/shell/keys";
import { duplicateSelected, placeToAdd, removeSelected, selectedSteps, tidyUp } from "./edit";

const group = "Builder";

/** Text fields, dialogs and menus handle their own keys. */
const notTyping = (target: EventTarget | null) =>
	!isTyping(target) && !document.querySelector('[role="dialog"], [role="menu"]');
/** Single letters act only while the document has the focus: elsewhere, people type them for another reason. */
const inDocument = (target: EventTarget | null) =>
	notTyping(target) && target instanceof Element && target.closest("[data-surface]") !== null;
/** The browser's clipboard events do the work; these shortcuts are only listed. */
const never = () => false;

/** Moves the focus to the view that was switched to, so that the same key leads back. It is rendered in the next frames. */
function focusDocument(tries = 30): void {
	requestAnimationFrame(() => {
		const surface = document.querySelector<HTMLElement>("[data-surface]");
		if (surface) surface.focus({ preventScroll: true });
		else if (tries > 0) focusDocument(tries - 1);
	});
}

/** useKeys registers the shortcuts shared by the canvas and the outline. */
export function useKeys(): void {
	const editor = useEditor();
	const replay = useReplay();
	const last = () => editor.get().selected.at(-1);
	const step = () => selectedSteps(editor).at(-1);

	useShortcut("A", "Add a step", () => editor.add({ kind: "step", place: placeToAdd(editor) }), group, inDocument);
	useShortcut(
		"Shift+A",
		"Add a branch",
		() => editor.add({ kind: "step", place: { at: "branch", step: step() ?? null } }),
		group,
		inDocument,
	);
	useShortcut("C", "Connect to…", () => connectFrom(step()), group, inDocument);
	useShortcut(
		"F2",
		"Rename",
		() => {
			const node = last();
			if (node !== undefined) editor.ask({ kind: "rename", node });
		},
		group,
		notTyping,
	);
	useShortcut("Delete", "Remove", () => removeSelected(editor), group, notTyping);
	useShortcut("Backspace", "Remove", () => removeSelected(editor), group, notTyping);
	useShortcut("Mod+C", "Copy", () => {}, group, never);
	useShortcut("Mod+X", "Cut", () => {}, group, never);
	useShortcut("Mod+V", "Paste", () => {}, group, never);
	useShortcut("Mod+D", "Duplicate", () => duplicateSelected(editor), group, notTyping);
	useShortcut("Mod+Z", "Undo", () => editor.undo(), group, notTyping);
	useShortcut("Mod+Shift+Z", "Redo", () => editor.redo(), group, notTyping);
	useShortcut("T", "Test step", () => withStep((id) => editor.ask({ kind: "test", step: id })), group, inDocument);
	useShortcut("P", "Pin the output of the step", () => withStep(replay.pinStep), group, inDocument);
	useShortcut("Mod+Enter", "Run", () => replay.run(), group);
	useShortcut("Mod+S", "Save", () => void editor.saving.save(), group);
	useShortcut("F", "Find a step", () => editor.ask({ kind: "find" }), group, inDocument);
	useShortcut("Shift+L", "Tidy up", () => tidyUp(editor), group, inDocument);
	useShortcut(
		"Y",
		"Switch between canvas and YAML",
		() => {
			editor.show(editor.get().view === "yaml" ? "canvas" : "yaml");
			focusDocument();
		},
		group,
		inDocument,
	);

	function withStep(does: (id: string) => void) {
		const id = step();
		if (id !== undefined) does(id);
	}
	function connectFrom(id: string | undefined) {
		if (id === undefined) return;
		if (connectable(editor.doc, id).length > 0) editor.ask({ kind: "connect", from: id });
		else editor.reject("There is no step it can be connected to.");
	}
}
