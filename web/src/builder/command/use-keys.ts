import { connectable } from "@/builder/command/candidates";
import { useReplay } from "@/builder/replay/replay";
import { useEditor } from "@/builder/state";
import { typing, useShortcut } from "@/shell/keys";
import { duplicateSelected, placeToAdd, removeSelected, selectedSteps, tidyUp } from "./edit";

const group = "Builder";

/** Text fields keep their own keys, and so do dialogs and menus. */
const free = (target: EventTarget | null) =>
	!typing(target) && !document.querySelector('[role="dialog"], [role="menu"]');
/** On the clipboard the browser's own events are heard: they are only listed here. */
const listed = () => false;

/** useKeys are the keys that mean the same on the canvas and in the outline. */
export function useKeys(): void {
	const editor = useEditor();
	const replay = useReplay();
	const last = () => editor.get().selected.at(-1);
	const step = () => selectedSteps(editor).at(-1);

	useShortcut("A", "Add a step", () => editor.add({ kind: "step", place: placeToAdd(editor) }), group, free);
	useShortcut(
		"Shift+A",
		"Add a branch",
		() => editor.add({ kind: "step", place: { at: "branch", step: step() ?? null } }),
		group,
		free,
	);
	useShortcut("C", "Connect to…", () => connectFrom(step()), group, free);
	useShortcut(
		"F2",
		"Rename",
		() => {
			const node = last();
			if (node !== undefined) editor.ask({ kind: "rename", node });
		},
		group,
		free,
	);
	useShortcut("Delete", "Remove", () => removeSelected(editor), group, free);
	useShortcut("Backspace", "Remove", () => removeSelected(editor), group, free);
	useShortcut("Mod+C", "Copy", () => {}, group, listed);
	useShortcut("Mod+X", "Cut", () => {}, group, listed);
	useShortcut("Mod+V", "Paste", () => {}, group, listed);
	useShortcut("Mod+D", "Duplicate", () => duplicateSelected(editor), group, free);
	useShortcut("Mod+Z", "Undo", () => editor.undo(), group, free);
	useShortcut("Mod+Shift+Z", "Redo", () => editor.redo(), group, free);
	useShortcut("T", "Test the step", () => withStep(replay.testStep), group, free);
	useShortcut("P", "Pin the output of the step", () => withStep(replay.pinStep), group, free);
	useShortcut("Mod+Enter", "Run", () => replay.run(), group);
	useShortcut("Mod+S", "Save", () => void editor.saving.save(), group);
	useShortcut("F", "Find a step", () => editor.ask({ kind: "find" }), group, free);
	useShortcut("Shift+L", "Tidy up", () => tidyUp(editor), group, free);
	useShortcut("Y", "Text and back", () => editor.show(editor.get().view === "yaml" ? "canvas" : "yaml"), group, free);

	function withStep(does: (id: string) => void) {
		const id = step();
		if (id !== undefined) does(id);
	}
	function connectFrom(id: string | undefined) {
		if (id === undefined) return;
		if (connectable(editor.doc, id).length > 0) editor.ask({ kind: "connect", from: id });
		else editor.refuse("There is no step that it could be connected to.");
	}
}
