import { Panel } from "@xyflow/react";
import { placeToAdd, tidyUp } from "@/pages/builder/command/edit";
import { useEditor, useReadOnly } from "@/pages/builder/state";
import { ZoomControls } from "@/shared/canvas/zoom-controls";
import { Button, IconButton } from "@/ui/button";
import { icon, PlusIcon } from "@/ui/icons";

const TidyIcon = icon("M6 2.5h4v3H6ZM2.5 10.5h4v3h-4ZM9.5 10.5h4v3h-4ZM8 5.5V8M4.5 10.5V8h7v2.5");

/** Controls are the buttons on the canvas: adding at the top left, zooming at the bottom left. */
export function Controls() {
	const editor = useEditor();
	const readOnly = useReadOnly();
	return (
		<>
			<Panel position="top-left" className="!m-3">
				{!readOnly && (
					<Button icon={PlusIcon} tabIndex={-1} onClick={() => editor.add({ kind: "step", place: placeToAdd(editor) })}>
						Add step
					</Button>
				)}
			</Panel>
			<ZoomControls fit="Zoom to fit (0)" tabIndex={-1}>
				{!readOnly && (
					<IconButton icon={TidyIcon} label="Tidy up (Shift+L)" small tabIndex={-1} onClick={() => tidyUp(editor)} />
				)}
			</ZoomControls>
		</>
	);
}
