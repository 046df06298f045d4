import { Panel, useReactFlow } from "@xyflow/react";
import { placeToAdd, tidyUp } from "@/builder/command/edit";
import { useEditor, useFixed } from "@/builder/state";
import { Button, IconButton } from "@/ui/button";
import { icon, PlusIcon } from "@/ui/icons";
import { stillness } from "./motion";

const MinusIcon = icon("M3 8h10");
const FitIcon = icon("M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10");
const TidyIcon = icon("M6 2.5h4v3H6ZM2.5 10.5h4v3h-4ZM9.5 10.5h4v3h-4ZM8 5.5V8M4.5 10.5V8h7v2.5");

/** Controls stand on the canvas: adding at the top left, the view at the bottom left. */
export function Controls() {
	const editor = useEditor();
	const flow = useReactFlow();
	const fixed = useFixed();
	const duration = () => (stillness() ? 0 : 180);
	return (
		<>
			<Panel position="top-left" className="!m-3">
				{!fixed && (
					<Button icon={PlusIcon} tabIndex={-1} onClick={() => editor.add({ kind: "step", place: placeToAdd(editor) })}>
						Add step
					</Button>
				)}
			</Panel>
			<Panel position="bottom-left" className="!m-3 flex rounded-8 border bg-surface p-0.5">
				<IconButton
					icon={MinusIcon}
					label="Zoom out"
					small
					tabIndex={-1}
					onClick={() => void flow.zoomOut({ duration: duration() })}
				/>
				<IconButton
					icon={PlusIcon}
					label="Zoom in"
					small
					tabIndex={-1}
					onClick={() => void flow.zoomIn({ duration: duration() })}
				/>
				<IconButton
					icon={FitIcon}
					label="Zoom to fit (0)"
					small
					tabIndex={-1}
					onClick={() => void flow.fitView({ padding: 0.15, maxZoom: 1, duration: duration() })}
				/>
				{!fixed && (
					<IconButton icon={TidyIcon} label="Tidy up (Shift+L)" small tabIndex={-1} onClick={() => tidyUp(editor)} />
				)}
			</Panel>
		</>
	);
}
