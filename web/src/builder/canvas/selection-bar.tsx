import { NodeToolbar, Position } from "@xyflow/react";
import { duplicateSelected, removeSelected } from "@/builder/command/edit";
import { NodeMenu } from "@/builder/command/menu";
import { useReplay } from "@/builder/replay/replay";
import { useEditor, useFixed, useSelection } from "@/builder/state";
import { IconButton } from "@/ui/button";
import { CopyIcon, MoreIcon, PlayIcon, TrashIcon } from "@/ui/icons";

/** SelectionBar stands above what is selected, with what can be done to it. */
export function SelectionBar() {
	const editor = useEditor();
	const selected = useSelection();
	const { testStep } = useReplay();
	if (useFixed() || selected.length === 0) return null;
	const [first] = selected;
	const single = selected.length === 1 && first !== undefined && !first.startsWith("@") ? first : null;
	const steps = selected.some((node) => !node.startsWith("@"));
	return (
		<NodeToolbar nodeId={[...selected]} isVisible position={Position.Top} offset={14} align="end">
			<div
				role="toolbar"
				aria-label="What is selected"
				className="nodrag nopan flex translate-x-5 rounded-8 border bg-surface p-0.5 shadow-lift"
			>
				{single !== null && (
					<IconButton icon={PlayIcon} label="Test this step (T)" small tabIndex={-1} onClick={() => testStep(single)} />
				)}
				{steps && (
					<IconButton icon={CopyIcon} label="Duplicate" small tabIndex={-1} onClick={() => duplicateSelected(editor)} />
				)}
				<IconButton icon={TrashIcon} label="Remove (Del)" small tabIndex={-1} onClick={() => removeSelected(editor)} />
				<NodeMenu trigger={<IconButton icon={MoreIcon} label="More" small tabIndex={-1} />} />
			</div>
		</NodeToolbar>
	);
}
