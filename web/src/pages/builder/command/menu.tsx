import type { ReactNode } from "react";
import { useDocument, useEditor, useSelection } from "@/pages/builder/state";
import { errorPath, find, isBlock, needOn } from "@/shared/workflow/model";
import { keyLabels } from "@/shell/keys";
import { Menu, MenuItem, MenuLine } from "@/ui/menu";
import { copySelected } from "./clipboard";
import {
	duplicateSelected,
	moveOutside,
	placeToAdd,
	removeSelected,
	selectedSteps,
	toggleDisabled,
	unwrapSelected,
	wrapSelected,
} from "./edit";

/** NodeMenu contains all actions on the selection. */
export function NodeMenu({ trigger }: { trigger: ReactNode }) {
	return (
		<Menu trigger={trigger}>
			<NodeMenuItems />
		</Menu>
	);
}

function NodeMenuItems() {
	const editor = useEditor();
	const doc = useDocument();
	const selected = useSelection();
	const steps = selectedSteps(editor);
	const single = selected.length === 1 ? selected[0] : undefined;
	const spot = single === undefined ? undefined : find(doc.steps, single);
	const inBlock = steps.some((id) => find(doc.steps, id)?.block != null);
	return (
		<>
			{spot && (
				<>
					<MenuItem hint="A" onSelect={() => editor.add({ kind: "step", place: placeToAdd(editor) })}>
						Add a step after
					</MenuItem>
					<MenuItem onSelect={() => editor.add({ kind: "step", place: { at: "before", step: spot.step.id } })}>
						Add a step before
					</MenuItem>
					<MenuItem
						hint="Shift+A"
						onSelect={() => editor.add({ kind: "step", place: { at: "branch", step: spot.step.id } })}
					>
						Add a branch
					</MenuItem>
					<MenuItem
						onSelect={() =>
							editor.add({ kind: "step", place: { at: "branch", step: needOn(spot.step.id, errorPath) } })
						}
					>
						Add a step for when it fails
					</MenuItem>
					<MenuItem hint="C" onSelect={() => editor.ask({ kind: "connect", from: spot.step.id })}>
						Connect to…
					</MenuItem>
					<MenuLine />
				</>
			)}
			{single !== undefined && (
				<MenuItem hint="F2" onSelect={() => editor.ask({ kind: "rename", node: single })}>
					Rename…
				</MenuItem>
			)}
			{steps.length > 0 && (
				<>
					<MenuItem hint={keyLabels("Mod+D").join("+")} onSelect={() => duplicateSelected(editor)}>
						Duplicate
					</MenuItem>
					<MenuItem onSelect={() => void copySelected(editor)}>Copy as YAML</MenuItem>
					<MenuLine />
					<MenuItem onSelect={() => toggleDisabled(editor)}>
						{steps.every((id) => find(doc.steps, id)?.step.disabled) ? "Enable" : "Disable"}
					</MenuItem>
					<MenuItem onSelect={() => editor.ask({ kind: "into", nodes: steps })}>Move into…</MenuItem>
					{inBlock && <MenuItem onSelect={() => moveOutside(editor, steps)}>Move out of the loop</MenuItem>}
					<MenuItem onSelect={() => wrapSelected(editor, "foreach")}>Wrap in “For each”</MenuItem>
					<MenuItem onSelect={() => wrapSelected(editor, "repeat")}>Wrap in “Repeat until”</MenuItem>
					{spot && isBlock(spot.step) && (
						<MenuItem onSelect={() => unwrapSelected(editor)}>Remove the loop, keep its steps</MenuItem>
					)}
				</>
			)}
			<MenuLine />
			<MenuItem danger hint="Del" onSelect={() => removeSelected(editor)}>
				Remove
			</MenuItem>
		</>
	);
}
